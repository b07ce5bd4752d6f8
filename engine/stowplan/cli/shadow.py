"""`stowplan shadow`: how the placements of the scheduler that is watched compare with what would have been decided here."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.server import server

if TYPE_CHECKING:
    from stowplan.cli.output import Page

KINDS = {
    "same": "the node that is the best here",
    "tied": "one of several that are equally good here",
    "lower": "a node that scores less here",
    "rejected": "a node that is rejected here, or no node passes",
    "skipped": "not compared: no profile here would try the pod, or the node is not known",
}
"""The outcomes of /shadow, in this order."""


@click.command("shadow")
@server
@click.option("--limit", type=click.IntRange(0), default=20, show_default=True, help="The most disagreements to show, newest last.")
@click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
    help="How to print the answer.",
)  # fmt: skip
@click.argument("report", metavar="[FILE]", required=False)
def command(server: str, limit: int, form: str, report: str | None) -> int:
    """Show how another scheduler's placements compare with what this policy would have decided.

    From a scheduler that runs with --shadow, or from FILE, which `stowplan run --shadow --report FILE` has written.

    \b
      stowplan shadow
      stowplan shadow shadow.json
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    found = from_server(server) if report is None else from_file(report)
    if form != "table":
        from stowplan.cli.output import document

        document(found, form)
        return 0
    from stowplan.cli.output import Page

    page = Page()
    show(page, found, limit)
    page.write()
    return 0


def from_server(server: str) -> dict[str, Any]:
    """What a running scheduler tells. Raises ServerError."""
    from stowplan.cli.server import ServerError, fetch
    from stowplan.cli.shapes import ShadowReport

    found = fetch(server, "/shadow", ShadowReport)
    if found is None:
        raise ServerError(f"{server} is no shadow: start it with `stowplan run --shadow`")
    answer: dict[str, Any] = found
    return answer


def from_file(path: str) -> dict[str, Any]:
    """A report. Raises ServerError."""
    from stowplan.cli.server import ServerError
    from stowplan.cli.shapes import ShadowReport, WrongShapeError, checked, parsed

    try:
        answer: dict[str, Any] = checked(parsed(Path(path).read_bytes()), ShadowReport)
    except OSError as error:
        raise ServerError(f"cannot read {path}: {error.strerror or error}") from None
    except WrongShapeError as error:
        raise ServerError(f"{path} is no report of `stowplan run --shadow --report FILE`: {error}") from None
    return answer


def show(page: Page, found: Mapping[str, Any], limit: int) -> None:
    """A report as tables."""
    from stowplan.cli.server import moment
    from stowplan.cli.tables import Table

    outcomes = found["outcomes"]
    compared = sum(count for kind, count in outcomes.items() if kind != "skipped")
    if found["agreement"] is None:
        page.line("no placement was compared yet", bold=True)
    else:
        page.line(f"agreement: {found['agreement']:.2%} of {compared} placements", bold=True)
    table = Table(["OUTCOME", "PLACEMENTS", "THE OTHER SCHEDULER TOOK"], right=frozenset({1}))
    for kind, meaning in KINDS.items():
        table.add(kind, outcomes.get(kind, 0), meaning)
    page.line()
    page.table(table)
    differ = found["disagreements"]
    if not differ or not limit:
        return
    page.heading("DISAGREEMENTS")
    table = Table(["TIME", "POD", "KIND", "THEIRS", "OURS", "WHY"])
    for each in differ[-limit:]:
        table.add(moment(each["time"]), each["pod"], each["kind"], each["theirs"], each["ours"] or "-", each["explanation"])
    page.table(table)
    if len(differ) > limit:
        page.line(f"{len(differ) - limit} earlier ones (--limit)")
