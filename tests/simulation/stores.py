"""A scheduler's store against a store made anew: from its own facts, and from what the server has in the end."""

import dataclasses

from properties.snapshots import assert_equal
from simulation.storage import KINDS, whole
from stowplan.objects import read
from stowplan.state import Store


def rebuilt(store: Store) -> Store:
    """A store made from the facts in another one."""
    made = Store()
    for facts in store.facts.values():
        for fact in facts.values():
            made.set_fact(fact)
    for node in store.nodes:
        made.set_node(node)
    for pod in store.pending.values():
        made.set_pod(pod)
    placed = [(node.name, seats) for node, seats in zip(store.nodes, store.seats, strict=True)]
    for name, pods in (*placed, *store.strays.items()):
        for pod in pods.values():
            if pod.node_name:
                made.set_pod(pod)
            else:
                made.assume(pod, name)
    return made


def inconsistent(store: Store) -> str:
    """How a store differs from one made from its facts; "" if it does not."""
    try:
        assert_equal(store, rebuilt(store))
    except AssertionError as error:
        return str(error)
    return ""


def truth(storage) -> Store:
    """The store of a scheduler that has read everything."""
    made = Store()
    for kind in KINDS:
        for item in storage.objects[kind].values():
            fact = read(whole(kind, item))
            if fact is not None:
                made.add(fact)
    return made


def differs(store: Store, storage) -> list[str]:
    """What a scheduler believes that the server does not have, and the reverse."""
    wanted, found = _facts(truth(storage)), _facts(store)
    keys = sorted(wanted.keys() | found.keys())
    return [f"{key}: {_unlike(found.get(key), wanted.get(key))}" for key in keys if found.get(key) != wanted.get(key)]


def _unlike(found, wanted) -> str:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return ", ".join(f"{name} {value} instead of {wanted[name]}" for name, value in found.items() if value != wanted[name])
    return f"{'unknown' if found is None else found} instead of {'nothing' if wanted is None else wanted}"


def _facts(store: Store) -> dict[str, object]:
    facts: dict[str, object] = {f"node {node.name}": _values(node) for node in store.nodes}
    for kind, kept in store.facts.items():
        facts |= {f"{kind.__name__} {key}": _values(fact) for key, fact in kept.items() if kind.__name__ != "PriorityClass"}
    facts |= {f"pod {key}": ("waits", pod.uid, dict(pod.labels)) for key, pod in store.pending.items()}
    placed = [(node.name, seats) for node, seats in zip(store.nodes, store.seats, strict=True)]
    for name, pods in (*placed, *store.strays.items()):
        facts |= {f"pod {key}": ("sits", pod.uid, name, bool(pod.node_name), dict(pod.labels)) for key, pod in pods.items()}
    return facts


def _values(fact) -> dict[str, str]:
    names = [field.name for field in dataclasses.fields(fact) if field.name != "raw"]
    return {name: repr(getattr(fact, name)) for name in names}
