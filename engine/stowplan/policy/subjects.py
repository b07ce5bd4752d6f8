"""Pods that somebody asks about: found by name, and, if they run already, judged as if they were pending."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from stowplan.objects import Pod
from stowplan.state import Store

NEAR = 5
"""Most names that are suggested."""
COMPARED = 5000
"""Most names that are compared letter by letter."""


class UnknownPodError(KeyError):
    """No pod, or more than one, has the name that was given; `args[0]` says so and names what comes near."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


@dataclass(frozen=True, slots=True)
class Subject:
    """A pod that is asked about, and the node it sits on, if any."""

    pod: Pod
    node: str | None


def find(store: Store, name: str) -> Subject:
    """The pod called `namespace/name`, or just `name` where that is unique. Raises UnknownPodError with near names."""
    if name in store.pending:
        return Subject(store.pending[name], None)
    known = _subjects(store)
    keys = sorted(key for key in known if name in (key, key.partition("/")[2]))
    if len(keys) == 1:
        return known[keys[0]]
    if keys:
        raise UnknownPodError(f"{len(keys)} pods are called {name}, which one: {', '.join(keys)}?")
    near = _near(name, sorted(known))
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    raise UnknownPodError(f"there is no pod {name} among {len(known)} (those that have finished are not kept){hint}")


def _subjects(store: Store) -> dict[str, Subject]:
    """All pods by key."""
    known = {key: Subject(pod, None) for key, pod in store.pending.items()}
    for node, seats in zip(store.nodes, store.seats, strict=True):
        known |= {key: Subject(pod, node.name) for key, pod in seats.items()}
    for name, strays in store.strays.items():
        known |= {key: Subject(pod, name) for key, pod in strays.items()}
    return known


def _near(name: str, keys: list[str]) -> list[str]:
    """Keys that hold the name, or look like it."""
    short = name.rpartition("/")[2]
    holding = [key for key in keys if short and short in key][:NEAR]
    if holding or len(keys) > COMPARED:
        return holding
    import difflib  # noqa: PLC0415 - only after a mistake, and slow to import

    if "/" in name:
        return difflib.get_close_matches(name, keys, NEAR)
    names = {key.partition("/")[2]: key for key in keys}
    return [names[match] for match in difflib.get_close_matches(name, names, NEAR)]


@contextmanager
def pending(store: Store, subject: Subject) -> Iterator[None]:
    """The cluster with the pod waiting instead of running; it is put back afterwards."""
    if subject.node is None:
        yield
        return
    store.set_pod(replace(subject.pod, node_name="", nominated_node=""))
    try:
        yield
    finally:
        store.set_pod(subject.pod)
