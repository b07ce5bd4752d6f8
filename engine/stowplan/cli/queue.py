"""`stowplan queue`: the pods that wait, for what, and until when."""

from __future__ import annotations

from typing import Any

import click

from stowplan.cli.server import server

STATES = (
    *("being bound", "asking extenders", "active", "preempting"),
    *("backing off", "unschedulable", "gated", "not served"),
)
"""As /queue has them; written down here, as its module takes long to import."""


@click.command("queue")
@server
@click.option(
    "--state", "states", multiple=True, type=click.Choice(STATES), metavar="STATE",
    help=f"Only pods in this state: {', '.join(STATES)}. Repeatable.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1, 1_000_000), default=1000, show_default=True, help="The most pods to show.")
@click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
    help="How to print the answer.",
)  # fmt: skip
def command(server: str, states: tuple[str, ...], limit: int, form: str) -> int:
    """List the pods of a running scheduler that have no node: what each of them waits for, and when it is tried next.

    Pods whose schedulerName is that of no profile are listed too: here at least nobody schedules them.

    \b
      stowplan queue
      stowplan queue --state gated --state "backing off"
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.server import ServerError, fetch
    from stowplan.cli.shapes import Queue

    query: dict[str, Any] = {"limit": limit} | ({"state": states} if states else {})
    found = fetch(server, "/queue", Queue, query)
    if found is None:
        raise ServerError(f"{server} has no /queue: is this a scheduler of another version?")
    if form != "table":
        from stowplan.cli.output import document

        document(found, form)
        return 0
    from stowplan.cli.output import Page

    page = Page()
    show(page, found)
    page.write()
    return 0


def show(page: Any, found: dict[str, Any]) -> None:
    """What /queue says, as a table."""
    from stowplan.cli import standby
    from stowplan.cli.server import now
    from stowplan.cli.tables import Table

    if found.get("shadow"):
        page.line("this scheduler is a shadow: it schedules nothing", fg="yellow")
    standby.show(page, found)
    if found.get("leads") and not found["synced"] and not found.get("shadow"):
        page.line("this scheduler does not know the whole cluster yet", fg="yellow")
    counts = ", ".join(f"{count} {state}" for state, count in found["counts"].items())
    page.line(f"{counts or 'no pod'}: waiting" if counts else "no pod waits", bold=True)
    if not found["items"]:
        return
    page.line()
    table, moment = Table(["POD", "STATE", "ATTEMPTS", "FOR", "NEXT TRY", "WHY"], right=frozenset({2})), now()
    for each in found["items"]:
        table.add(each["pod"], each["state"], each.get("attempts", "-"), *_times(each, moment), why(each))
    page.table(table)
    if found["total"] > len(found["items"]):
        page.line(f"... and {found['total'] - len(found['items'])} more (--limit)")


def _times(each: dict[str, Any], now: float) -> tuple[str, str]:
    """For how long it has been in its state, and when it is tried again."""
    from stowplan.cli.server import epoch, span

    since = span(now - epoch(each["since"])) if "since" in each else "-"
    if "nextTry" not in each:
        return since, "now" if each["state"] == "active" else "-"
    left = epoch(each["nextTry"]) - now
    within = "in" if each["state"] == "backing off" else "a change, or in"
    return since, f"{within} {span(left)}" if left > 0 else "now"


def why(each: dict[str, Any]) -> str:
    """What keeps a pod waiting, in words."""
    message, plugins = each.get("message", ""), ", ".join(each.get("plugins", ()))
    match each["state"]:
        case "being bound":
            return f"to {each.get('node', 'a node')} ({each.get('stage', '-')})"
        case "preempting":
            return f"victims on {each.get('node') or 'a node'} are being evicted"
        case "gated":
            return f"gated: {message}"
        case "not served":
            return str(message)
    return f"{message} [{plugins}]" if plugins and message else str(message or plugins)


def sentence(each: dict[str, Any], now: float) -> str:
    """The state of one pod, with the attempt and the next try."""
    from stowplan.cli.server import moment

    attempts, state = each.get("attempts", 0), each["state"]
    if state == "backing off" and "nextTry" in each:
        return f"{each['pod']} is backing off until {moment(each['nextTry'])}, after attempt {attempts}: {why(each)}"
    if state == "not served":
        return f"{each['pod']} waits: {why(each)}"
    said = f"{each['pod']} is {state}" + (
        f" after {attempts} attempts" if attempts > 1 else f" after attempt {attempts}" if attempts else ""
    )
    reason = why(each).removeprefix("gated: ")
    times = _times(each, now)
    since = f", for {times[0]}" if times[0] != "-" else ""
    return f"{said}{since}" + (f": {reason}" if reason else "")
