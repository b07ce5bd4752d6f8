"""Facts that decisions have changed before the API server shows it: volumes reserved, nodes selected, devices allocated.

The store shows them as they will be, so that no volume or device is given away twice. What the API server says meanwhile is
remembered underneath: an object that does not show the change yet must not undo it, and giving a decision up brings back what
was said last, not what was there at first (upstream: the assume caches).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stowplan.objects import OtherFact, PersistentVolume, PersistentVolumeClaim, ResourceClaim
from stowplan.state import Store

Key = tuple[type, str]


@dataclass(slots=True)
class _Layer:
    """One fact as decided by a pod, over what was last observed (None: not there)."""

    decided: OtherFact
    observed: OtherFact | None
    uid: str


class Overlay:
    """Decided facts over observed ones. All changes of facts other than pods and nodes go through here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._layers: dict[Key, _Layer] = {}

    def observe(self, fact: OtherFact) -> None:
        """The API server shows this fact."""
        key = (type(fact), fact.key)
        layer = self._layers.get(key)
        if layer is not None and not settles(layer, fact):
            layer.observed = fact
            return
        self._layers.pop(key, None)
        self._store.set_fact(fact)

    def observe_gone(self, kind: type, key: str) -> None:
        """The API server shows that a fact is deleted; one that is to be created may not have been there yet."""
        layer = self._layers.get((kind, key))
        if layer is not None and layer.observed is None:
            return
        self._layers.pop((kind, key), None)
        self._store.remove_fact(kind, key)

    def decide(self, uid: str, facts: Iterable[OtherFact]) -> None:
        """A decision about the pod of this uid makes facts look like this."""
        for fact in facts:
            key = (type(fact), fact.key)
            under = self._layers.get(key)
            observed = self._store.facts.get(key[0], {}).get(key[1]) if under is None else under.observed
            self._layers[key] = _Layer(fact, observed, uid)
            self._store.set_fact(fact)

    def withdraw(self, uid: str) -> None:
        """The decision about a pod came to nothing: its facts are as observed."""
        for key, layer in self._of(uid):
            del self._layers[key]
            if layer.observed is None:
                self._store.remove_fact(*key)
            else:
                self._store.set_fact(layer.observed)

    def fulfil(self, uid: str) -> None:
        """The pod is bound, and the API server shows it: a claim made for it has got another name, under which it is shown."""
        for key, layer in self._of(uid):
            if isinstance(layer.decided, ResourceClaim) and not layer.decided.uid:
                del self._layers[key]
                self._store.remove_fact(*key)

    def unseen(self, uid: str) -> bool:
        """Whether the API server has yet to show something that was decided about the pod."""
        return bool(self._of(uid))

    def _of(self, uid: str) -> list[tuple[Key, _Layer]]:
        return [(key, layer) for key, layer in self._layers.items() if layer.uid == uid]


def settles(layer: _Layer, fact: OtherFact) -> bool:
    """Whether an observed fact shows the decided change, or one that makes it void."""
    decided = layer.decided
    if isinstance(fact, PersistentVolume):
        return fact.claim is not None or fact.terminating
    if isinstance(fact, PersistentVolumeClaim):
        assert isinstance(decided, PersistentVolumeClaim)
        return fact.uid != decided.uid or fact.selected_node is not None or bool(fact.volume) or fact.terminating
    if isinstance(fact, ResourceClaim):
        replaced = isinstance(decided, ResourceClaim) and decided.uid not in ("", fact.uid)
        return replaced or fact.deleting or layer.uid in fact.reserved
    return True
