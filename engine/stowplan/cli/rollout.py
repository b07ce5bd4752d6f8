"""How the two versions of a rollout compare, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.cli.output import Page
from stowplan.cli.tables import Table

VERSIONS = ("stable", "candidate")
SHARES = (0.5, 0.95)
NOTHING = "-"


def show(page: Page, told: Mapping[str, Any]) -> None:
    """Add a rollout, as /policy tells it, to a page."""
    page.heading(f"ROLLOUT of {told['profile']}: {whom(told)}")
    table = Table(["", *map(str.upper, VERSIONS)], right=frozenset({1, 2}))
    for name, cells in rows([told["versions"][version] for version in VERSIONS]):
        table.add(name, *cells)
    page.table(table)


def whom(told: Mapping[str, Any]) -> str:
    """Which pods the candidate gets, and where."""
    parts = [f"the candidate gets {told['percent']:g}% of the workloads"]
    if "match" in told:
        parts.append(f"those for which {told['match']}")
    if "nodes" in told:
        parts.append(f"on {told['nodes']['candidate']} of {told['nodes']['total']} nodes")
    return ", ".join(parts)


def rows(versions: list[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Name -> a cell for each version; what neither can tell yet is left out."""
    found = [("placed", [str(each["placed"]) for each in versions]), ("pending", [str(each["pending"]) for each in versions])]
    places = sorted({place for each in versions for place in each["waiting"]})
    found += [(f"  {place}", [str(each["waiting"].get(place, 0)) for each in versions]) for place in places]
    results = sorted({result for each in versions for result in each["attempts"]})
    found += [(f"attempts: {result}", [str(each["attempts"].get(result, 0)) for each in versions]) for result in results]
    times = [each.get("secondsToPlace") for each in versions]
    found.append(("time to place: mean", [NOTHING if each is None else seconds(each["mean"]) for each in times]))
    found += [(f"  {share:.0%} within", [NOTHING if each is None else within(each, share) for each in times]) for share in SHARES]
    found.append(("  longest", [NOTHING if each is None else seconds(each["max"]) for each in times]))
    margins = [each.get("margin") for each in versions]
    found.append(("margin over the runner-up: mean", [NOTHING if each is None else f"{each['mean']:.4g}" for each in margins]))
    found.append(("  decisions looked at", ["0" if each is None else str(each["decisions"]) for each in margins]))
    return [(name, cells) for name, cells in found if set(cells) != {NOTHING}]


def within(times: Mapping[str, Any], share: float) -> str:
    """The bound below which that share of the pods was placed, no longer than the longest."""
    counts = times["le"]
    wanted = share * counts.get("+Inf", 0)
    limit = next((limit for limit, count in counts.items() if count >= wanted), "+Inf")
    return seconds(min(float(limit), times["max"]))


def seconds(value: float) -> str:
    """Three digits: `12.5 ms`, `3.07 s`, `412 s`."""
    if value < 1:
        return f"{value * 1000:.3g} ms"
    return f"{value:.3g} s" if value < 1000 else f"{value:.0f} s"
