"""What lies behind the rejections of one attempt: the plugins' own facts, completed by what other plugins say of the same nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from stowplan.plugins.plugin import Area, Detail
from stowplan.policy.compile import Policy
from stowplan.policy.nominated import Attempt, counts_as_nominated
from stowplan.state import Cluster, Store
from stowplan.text import some

AREAS = 1000
"""Most areas of one detail that are looked at."""
_SINGULAR = {"node(s) were": "node was", "node(s) exceed": "node exceeds", "node(s)": "node"}
TAKES = "can take the pod"
NAMED = 3
"""Names that are shown before the rest is counted."""
GROUPS = 3
"""Groups of areas, told apart by what other plugins say of them, that are shown."""


def details(policy: Policy, store: Store, found: Attempt) -> dict[str, list[str]]:
    """Sentences by plugin, for the plugins that know more about the nodes that they are first to reject; in filter order."""
    if found.opening is None or found.filtering is None:
        return {}
    profile, answer = policy.profiles[found.profile], {}
    rows = _first_rejected(found)
    for name in found.filtering.names:
        tell = profile.plugins[name].details
        if tell is None or name not in rows or found.opening.asks[name] is None:
            continue
        view = Cluster(store, np.array(rows[name], dtype=np.intp))
        lines = [line for detail in tell(found.opening.asks[name], view) for line in _lines(found, name, detail)]
        answer[name] = list(dict.fromkeys(lines))
    crowded = list(_crowded(policy, store, found))
    return answer | ({"nominated pods": crowded} if crowded else {})


def _first_rejected(found: Attempt) -> dict[str, list[int]]:
    """Rows by the plugin whose refusal is the row's status, as far as that plugin rejects it without nominated pods."""
    assert found.filtering is not None
    rows: dict[str, list[int]] = {}
    for row, status in found.infeasible.items():
        if status.plugin in found.filtering.rejected and found.filtering.rejected[status.plugin][row]:
            rows.setdefault(status.plugin, []).append(row)
    return rows


def _crowded(policy: Policy, store: Store, found: Attempt) -> Iterator[str]:
    """Nodes that only nominated pods keep from taking the pod."""
    assert found.filtering is not None
    rows = [row for row, status in found.infeasible.items() if status.plugin and found.filtering.first[row] < 0]
    for row in sorted(rows, key=lambda row: store.nodes[row].name)[:NAMED]:
        name = store.nodes[row].name
        pods = store.nominated.get(name, {}).values()
        keys = sorted(pod.key for pod in pods if counts_as_nominated(policy, found.pod, pod))
        yield f"{name} would do, but {some(keys, NAMED)}, nominated to it, count{'s' if len(keys) == 1 else ''} as running there"
    if len(rows) > NAMED:
        yield f"so it is on {len(rows) - NAMED} more"


def _lines(found: Attempt, own: str, detail: Detail) -> Iterator[str]:
    if not detail.areas:
        yield detail.text
        return
    groups: dict[str, list[str]] = {}
    for area in detail.areas[:AREAS]:
        groups.setdefault(_why(found, own, detail, area), []).append(area.name)
    beyond = len(detail.areas) - AREAS
    for why, names in list(groups.items())[:GROUPS]:
        verb = "holds" if len(names) == 1 else "hold"
        yield f"{detail.kind} {some(names, NAMED)} {verb} {detail.text}{why}"
    rest = sum(map(len, list(groups.values())[GROUPS:])) + max(0, beyond)
    if rest:
        yield f"{rest} more hold {detail.text}"


def _why(found: Attempt, own: str, detail: Detail, area: Area) -> str:
    """What other filters say of the nodes of an area, and what would leave it out."""
    counts = Counter(reason for row in area.rows for reason in _others(found, own, row))
    if len(counts) == 1 and set(counts.values()) == {len(area.rows)}:
        told = _all(next(iter(counts)), len(area.rows))
    else:
        told = ", ".join(sorted(f"{count} {_of(reason, count)}" for reason, count in counts.items()))
    rejected = found.filtering.rejected if found.filtering is not None else {}
    hints = [hint for name, hint in detail.remedies.items() if name in rejected and rejected[name][list(area.rows)].all()]
    return "".join((f": {told}" if told else "", *(f"; {hint}" for hint in hints)))


def _all(reason: str, count: int) -> str:
    """A reason that all nodes of an area have."""
    if reason == TAKES:
        return f"it {TAKES}" + (f" on its {count} nodes" if count > 1 else "")
    if reason.startswith("node(s)"):
        return f"its {count} {_of(reason, count)}" if count > 1 else f"its {_of(reason, 1)}"
    return f"{reason} on its {count} nodes" if count > 1 else reason


def _of(reason: str, count: int) -> str:
    """A reason, without the grammar of events, as it is said of so many nodes."""
    for plural, one in _SINGULAR.items():
        if reason.startswith(plural):
            return reason.replace(plural, one if count == 1 else plural.replace("node(s)", "nodes"), 1)
    return reason


def _others(found: Attempt, own: str, row: int) -> Sequence[str]:
    """Why a row takes no pod, leaving one plugin aside; TAKES if it does."""
    assert found.filtering is not None
    filtering = found.filtering
    name = next((name for name in filtering.names if name != own and filtering.rejected[name][row]), None)
    if name is not None:
        return filtering.status(name, row).reasons
    status = found.infeasible.get(row)
    if status is None:
        return (TAKES,)
    return ("refused for another of its constraints",) if status.plugin == own else status.reasons
