"""Scheduler names that edits take away: pods of such a name wait, and no scheduler tells them why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from stowplan.policy.compile import Policy
from stowplan.profile import Configuration, Items, Leaf, Origin, Table
from stowplan.state import Store
from stowplan.text import Code, Diagnostic, Severity, counted, some


def served(policy: Policy) -> tuple[str, ...]:
    """The names that pods can ask for."""
    rollout = policy.rollout
    return tuple(name for name in policy.profiles if rollout is None or name != rollout.candidate)


def waiting(names: Iterable[str], store: Store | None) -> dict[str, int]:
    """How many pods of each name wait."""
    wanted = dict.fromkeys(names, 0)
    if wanted and store is not None:
        found = Counter(pod.spec.scheduler_name for pod in store.pending.values())
        wanted = {name: found[name] for name in wanted}
    return wanted


def removed(before: Policy, after: Policy, store: Store | None) -> Iterator[Diagnostic]:
    """A warning for each name that the later policy has no more."""
    for name in served(before):
        if name in served(after):
            continue
        pods = [] if store is None else [key for key, pod in store.pending.items() if pod.spec.scheduler_name == name]
        waits = f"{counted(len(pods), 'pod')} of it wait{'s' * (len(pods) == 1)} ({some(sorted(pods), 3)}), and new ones will"
        message = f'no profile has schedulerName "{name}" any more: ' + (waits if pods else "new pods of it will wait")
        note = "fine if another scheduler serves that name; else give a profile the name, or the pods another one"
        origin = after.configuration.origin
        place = None if origin is None else origin.under("profiles").span
        yield Diagnostic(Code.NAME_REMOVED, Severity.WARNING, message, place, "profiles", (note,))


def unsaid(configuration: Configuration) -> bool:
    """Whether a document says nothing of profiles: kube-scheduler, and a start here, take `default-scheduler` then."""
    origin = configuration.origin
    if not isinstance(origin, Origin) or not isinstance(origin.tree, Table):
        return True
    profiles = origin.tree.fields.get("profiles")
    return (
        profiles is None
        or (isinstance(profiles, Leaf) and profiles.value is None)
        or (isinstance(profiles, Items) and not profiles.items)
    )


def shown(unserved: Mapping[str, int]) -> str:
    """One line about names that pods wait for; "" where none does."""
    return "; ".join(
        f'{counted(count, "pod")} wait{"s" * (count == 1)} for schedulerName "{name}", which the policy has no more'
        for name, count in unserved.items()
        if count
    )
