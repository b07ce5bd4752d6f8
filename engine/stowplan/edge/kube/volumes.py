"""Volumes chosen for a pod, as the volume controllers are told of them (upstream: `bindAPIUpdate` of VolumeBinding).

A chosen PersistentVolume is reserved for its claim; a claim whose volume is to be made gets the node to make it for. Waiting
for the outcome is the loop's business, which sees the claims change.
"""

from __future__ import annotations

from urllib.parse import quote

from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.settle import Object, PrepareError, settle
from stowplan.objects import PersistentVolume, PersistentVolumeClaim

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


async def reserve(volume: PersistentVolume, caller: Caller) -> None:
    """PrepareError if the volume is another claim's meanwhile."""
    wanted = volume.claim
    if wanted is None:
        return

    def change(held: Object) -> Object | None:
        reference = held.get("spec", {}).get("claimRef")
        if reference is None:
            annotations = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}}
        else:
            if (reference.get("namespace"), reference.get("name")) != wanted[:2] or reference.get("uid", "") not in (
                "",
                wanted.uid,
            ):
                raise PrepareError(f'persistentvolume "{volume.name}" is bound to another claim')
            if reference.get("uid"):
                return None
            annotations = {}
        named = {"namespace": wanted.namespace, "name": wanted.name, "uid": wanted.uid}
        return {**annotations, "spec": {"claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **named}}}

    await settle(caller, f"/api/v1/persistentvolumes/{quote(volume.name)}", change)


async def select_node(claim: PersistentVolumeClaim, caller: Caller) -> None:
    """PrepareError if the claim is another one, or meant for another node, meanwhile."""

    def change(held: Object) -> Object | None:
        metadata = held["metadata"]
        if metadata.get("uid") != claim.uid:
            raise PrepareError(f'persistentvolumeclaim "{claim.name}" was recreated')
        selected = metadata.get("annotations", {}).get(SELECTED_NODE)
        if selected == claim.selected_node or held.get("spec", {}).get("volumeName"):
            return None
        if selected is not None:
            raise PrepareError(f'persistentvolumeclaim "{claim.name}" has got another selected node, "{selected}"')
        return {"metadata": {"annotations": {SELECTED_NODE: claim.selected_node}}}

    path = f"/api/v1/namespaces/{quote(claim.namespace)}/persistentvolumeclaims/{quote(claim.name)}"
    await settle(caller, path, change)
