"""What a decision record looks like: verdict, when and under which policy, what decided, scores, and why other nodes were not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stowplan.cli.output import Page
from stowplan.cli.scored import TOP
from stowplan.cli.server import epoch, moment, now, span
from stowplan.cli.tables import Table
from stowplan.edge.policies.naming import named
from stowplan.text import counted, some

Record = Mapping[str, Any]


def show(page: Page, record: Record) -> None:
    """Print a record, as /decisions and the file of decisions have it."""
    _verdict(page, record)
    policy = record["policy"]
    known = named(policy["generation"], policy.get("hash", ""), policy.get("version"))
    ago = span(now() - epoch(record["time"]))
    attempt = f" in attempt {record['attempt']}" if record["attempt"] else ""
    page.line(f"decided {moment(record['time'])} ({ago} ago){attempt}, under policy {known}")
    if record.get("node"):
        _chosen(page, record)
    _rejected(page, record)
    for rule, reason in record.get("audit", {}).items():
        page.line(f"audit: rule {rule} would have rejected {record.get('node')}: {reason}", fg="yellow")
    for rule, error in record.get("ruleErrors", {}).items():
        page.line(f"rule {rule} had no value on some node: {error}", fg="yellow")
    if victims := record.get("victims"):
        page.line(f"preempts {some(list(victims), 5)}")
    if not record["detailed"] and record["result"] != "skipped":
        page.line("no scores were recorded: other pods were decided at the same moment")
        page.line(
            f"`stowplan explain --cluster DUMP {record['pod']}` judges it anew: that answers for today's cluster, "
            "not for what was decided"
        )


def _verdict(page: Page, record: Record) -> None:
    pod, profile = record["pod"], record["profile"]
    if record.get("node"):
        feasible = f"{counted(record.get('feasible', 0), 'node')} feasible"
        page.line(
            f"{pod} -> {record['node']} (total {record.get('score', 0):g}, {feasible}, profile {profile})", bold=True, fg="green"
        )
        return
    words = {"unschedulable": "was unschedulable", "error": "was not scheduled: the attempt failed", "skipped": "was not tried"}
    page.line(f"{pod} {words.get(record['result'], record['result'])} (profile {profile})", bold=True, fg="red")
    if record.get("message"):
        page.line(f"  {record['message']}")


def _chosen(page: Page, record: Record) -> None:
    """What made the node the one, and the scores of the best."""
    candidates = record.get("candidates", [])
    if not candidates:
        return
    page.line(_decided(record, candidates))
    names = list(dict.fromkeys(name for each in candidates for name in each["scores"]))
    shown = candidates[:TOP]
    page.heading("SCORES: RAW, NORMALISED, WEIGHTED")
    table = Table(["PLUGIN", *(each["node"] for each in shown)], right=frozenset(range(1, 1 + len(shown))))
    for name in names:
        table.add(name, *(_cell(each["scores"].get(name)) for each in shown))
    table.add("TOTAL", *(f"{each['total']:g}" for each in shown))
    page.table(table)
    if len(candidates) > len(shown):
        page.line("then " + ", ".join(f"{each['node']} {each['total']:g}" for each in candidates[TOP:]))


def _cell(score: Mapping[str, float] | None) -> str:
    return "-" if score is None else " ".join(f"{score[part]:g}" for part in ("raw", "normalized", "weighted"))


def _decided(record: Record, candidates: list[Record]) -> str:
    """The runner-up, the margin, and the plugins that made it, the largest part first."""
    first, *others = candidates
    if not others:
        return f"{first['node']} was the only node that passed every filter"
    other = others[0]
    parts = {name: _weighted(first, name) - _weighted(other, name) for name in {**first["scores"], **other["scores"]}}
    told = ", ".join(f"{name} {part:+g}" for name, part in sorted(parts.items(), key=lambda item: (-abs(item[1]), item[0])) if part)
    margin = round(first["total"] - other["total"], 6)
    if margin == 0:
        ties = record.get("tied", 0)
        what = f"tied with {other['node']}" + (f" and {ties - 2} more" if ties > 2 else "")
        return f"{what}: one of them was drawn" + (f" ({told})" if told else "")
    return f"ahead of {other['node']} by {margin:g}" + (f": {told}" if told else "")


def _weighted(candidate: Record, name: str) -> float:
    return float(candidate["scores"].get(name, {}).get("weighted", 0.0))


def _rejected(page: Page, record: Record) -> None:
    reasons = record.get("rejected", [])
    if not reasons:
        return
    page.heading("REJECTED NODES")
    table = Table(["COUNT", "REASON", "PLUGIN", "FOR EXAMPLE"], right=frozenset({0}))
    for each in reasons:
        table.add(each["nodes"], each["reason"], each["plugin"], ", ".join(each["examples"]))
    page.table(table)
