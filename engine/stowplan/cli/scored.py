"""The scores of the best nodes plugin by plugin, and remarks on how a pod's requests are scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowplan.cli.output import Page
from stowplan.cli.tables import GAP, Table, cells
from stowplan.objects import Amounts, is_scalar
from stowplan.plugins.arguments import NodeResourcesFitArgs
from stowplan.policy.compile import Profile
from stowplan.policy.evaluate import Scored, Scoring, points
from stowplan.policy.flip import ranking, written
from stowplan.policy.nominated import Attempt
from stowplan.state import Store

FIT = "NodeResourcesFit"
TOP = 3
"""Nodes whose scores are shown if nobody says how many."""


def scores(page: Page, profile: Profile, found: Attempt, store: Store, top: int | None) -> None:
    """Raw / normalised / weighted score of the best nodes, in as many tables as the width demands.

    With `top` open it is one table, of the weighted scores alone if that makes room for the runner-up, who is never left out.
    """
    order = ranking(found)[: top or TOP].tolist()
    scoring = found.scoring
    if scoring is None or not order:
        return
    names = [store.nodes[int(found.feasible[place])].name for place in order]
    labels = [name for name in profile.points["score"] if name in scoring.scores or scoring.skipped.get(name)]
    weights = [f"x{scoring.scores[label].weight}" if label in scoring.scores else "" for label in labels]
    for short in (False, True, False):  # back to everything if nothing helps
        columns = [_column(name, scoring, labels, place, short=short) for name, place in zip(names, order, strict=True)]
        blocks = list(_blocks(page.width, max(map(len, labels), default=0), [max(map(cells, column)) for column in columns]))
        if top is not None or len(blocks) == 1 or blocks[0][1] > 1:
            break
    page.heading("SCORES: WEIGHTED" if short else "SCORES: RAW, NORMALISED, WEIGHTED")
    for start, end in blocks:
        table = Table(
            ["PLUGIN", "WEIGHT", *(column[0] for column in columns[start:end])], right=frozenset(range(1, 2 + end - start))
        )
        for place, (label, weight) in enumerate(zip([*labels, "TOTAL"], [*weights, ""], strict=True)):
            table.add(label, weight, *(column[place + 1] for column in columns[start:end]))
        page.table(table)
        if top is None and end > 1:
            break
        if end < len(columns):
            page.line()


def _column(node: str, scoring: Scoring, labels: Sequence[str], place: int, *, short: bool) -> list[str]:
    """Header, a cell for each plugin, and the total of one node."""
    first = 2 if short else 0
    rows = [_numbers(scoring.scores[label], place, scoring.scale)[first:] if label in scoring.scores else None for label in labels]
    widths = [max(len(str(n)) for n in numbers) for numbers in zip(*(row for row in rows if row is not None), strict=True)]
    shown = ["skipped" if row is None else " ".join(f"{n:>{w}}" for n, w in zip(row, widths, strict=True)) for row in rows]
    return [node, *shown, str(points(int(scoring.totals[place]), scoring.scale))]


def _numbers(scored: Scored, place: int, scale: int) -> tuple[float, float, float]:
    raw, normalised = (points(int(steps[place]), scored.unit) for steps in (scored.raw, scored.normalised))
    return raw, normalised, points(int(scored.weighted[place]), scale)


def _blocks(width: int | None, label: int, columns: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of columns that fit side by side, at least one each."""
    start = 0
    while start < len(columns):
        used, end = label + len(GAP) + len("WEIGHT"), start
        while end < len(columns) and (end == start or width is None or used + len(GAP) + columns[end] <= width):
            used += len(GAP) + columns[end]
            end += 1
        yield start, end
        start = end


def requests(found: Attempt) -> str:
    """What the pod requests, what decided that, and what scoring assumes if that is something else."""
    spec = found.pod.spec
    asked = {name: amount for name, amount in spec.requests.items() if amount}
    parts = [f"requests {_list(asked)}" if asked else "requests nothing"]
    if spec.dominant != "containers" and asked.get("cpu"):
        parts.append(f"the cpu request is that of {spec.dominant}")
    assumed = {
        name: spec.score_requests.get(name)
        for name in ("cpu", "memory")
        if spec.score_requests.get(name) != spec.requests.get(name)
    }
    if assumed:
        parts.append(f"scored as {_list(assumed)}")
    return "; ".join(parts)


def _list(amounts: Amounts | dict[str, int]) -> str:
    return ", ".join(f"{name} {written(name, amount)}" for name, amount in amounts.items())


def notes(profile: Profile, found: Attempt) -> Iterator[str]:
    """What is easily misread in the scores."""
    args = profile.args.get(FIT)
    if found.scoring is None or FIT not in found.scoring.scores or not isinstance(args, NodeResourcesFitArgs):
        return
    names = [resource.name for resource in args.scoring_strategy.resources]
    bypassed = [name for name in names if is_scalar(name) and not found.pod.spec.score_requests.get(name)]
    counted = [name for name in names if name not in bypassed]
    if bypassed and counted:
        yield f"{FIT} scores by {', '.join(counted)} alone: the pod requests no {', '.join(bypassed)}"
    elif bypassed:
        yield f"{FIT} scores all nodes alike: the pod requests no {', '.join(bypassed)}"
