"""What must stand before a pod is bound: volumes are reserved or ordered, claims of devices allocated and reserved."""

from __future__ import annotations

from stowplan.edge.kube import volumes
from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.claims import Claims
from stowplan.edge.kube.settle import PrepareError
from stowplan.loop.effects import Prepare
from stowplan.loop.events import Failure, NotBound, Prepared
from stowplan.objects import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim


class Preparations:
    """See `Preparer`. `patience`: seconds that devices have to become ready for binding."""

    def __init__(self, caller: Caller, patience: float) -> None:
        self._caller, self._claims = caller, Claims(caller, patience)

    async def prepare(self, effect: Prepare) -> Prepared | NotBound:
        """Write it all, one after the other; what was done is taken back where the rest cannot be."""
        pod, plugin = effect.pod, "VolumeBinding"
        try:
            try:
                for fact in effect.facts:
                    if isinstance(fact, PersistentVolume):
                        await volumes.reserve(fact, self._caller)
                for fact in effect.facts:
                    if isinstance(fact, PersistentVolumeClaim):
                        await volumes.select_node(fact, self._caller)
            except PrepareError as error:
                raise PrepareError(f"binding volumes: {error}") from None
            plugin = "DynamicResources"
            await self._claims.reserve(pod, [fact for fact in effect.facts if isinstance(fact, ResourceClaim)])
        except PrepareError as error:
            await self._claims.undo(pod)
            return NotBound(pod.key, pod.uid, Failure.REFUSED, f'running PreBind plugin "{plugin}": {error}')
        return Prepared(pod.key, pod.uid)

    async def undo(self, pod: Pod) -> None:
        """The pod is not bound after all."""
        await self._claims.undo(pod)

    async def deallocate(self, pod: Pod, claim: ResourceClaim) -> str:
        """Take from a claim what it holds; what went wrong, "" if nothing did."""
        return await self._claims.deallocate(pod, claim)

    def bound(self, pod: Pod) -> None:
        """There is nothing to undo any more."""
        self._claims.bound(pod)
