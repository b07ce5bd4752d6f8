"""`stowplan why`: why a pod went where it went, as it was recorded then."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.server import server

if TYPE_CHECKING:
    from stowplan.cli.output import Page

EXIT_NOTHING = 1
EVERY = 1_000_000
"""More than there are: a limit that leaves out nothing."""


@click.command("why")
@server
@click.option(
    "--decisions", "files", metavar="FILE", multiple=True, help="Read records from what `run --decisions` wrote. Repeatable."
)
@click.option("--all", "every", is_flag=True, help="Show every record of the pod, not the last one alone.")
@click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
    help="How to print the answer.",
)  # fmt: skip
@click.argument("pod", metavar="[NAMESPACE/]POD")
def command(server: str, files: tuple[str, ...], every: bool, form: str, pod: str) -> int:
    """Tell why a pod went to its node, or nowhere, from the record that the scheduler made of that decision.

    The answer is about the cluster and the policy as they were then. A scheduler keeps its last 1,000 decisions; older ones are
    in the file that `stowplan run --decisions FILE` appends to. Exits with 1 where there is no record.

    \b
      stowplan why web/api-7d9
      stowplan why --decisions /var/log/stowplan/decisions.jsonl web/api-7d9
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    pod = _key(pod, files, server)
    told: dict[str, Any] = {}
    if files:
        records, since = from_files(files, pod)
    else:
        told = from_server(server, pod)
        records, since = told["items"], told["since"]
    standing = {name: told[name] for name in ("leads", "leader") if name in told}
    if form != "table":
        from stowplan.cli.output import document

        document({"pod": pod, **standing, "items": records if every else records[-1:]}, form)
        return 0 if records else EXIT_NOTHING
    from stowplan.cli import standby
    from stowplan.cli.output import Page
    from stowplan.cli.recorded import show

    page = Page()
    standby.show(page, told)
    for place, record in enumerate(records if every else records[-1:]):
        if place:
            page.line()
        show(page, record)
    if len(records) > 1 and not every:
        page.line()
        page.line(f"{len(records) - 1} earlier records of {pod} (--all)")
    if not records:
        _nothing(page, pod, since, "these files" if files else "this scheduler")
    if not files and (not records or records[-1]["result"] != "scheduled"):
        _state(page, server, pod)
    page.write()
    return 0 if records else EXIT_NOTHING


def from_server(server: str, pod: str) -> dict[str, Any]:
    """What a scheduler has recorded about a pod (`items`), how far back its records go (`since`), and whether it leads."""
    return _decisions(server, f"/decisions/{pod}")


def _decisions(server: str, path: str, query: dict[str, Any] | None = None) -> dict[str, Any]:
    from stowplan.cli.server import ServerError, fetch
    from stowplan.cli.shapes import DecisionList

    found = fetch(server, path, DecisionList, query)
    if found is None:
        raise ServerError(f"{server} has no /decisions: is this a scheduler of another version?")
    answer: dict[str, Any] = found
    return answer


def named_at_server(server: str, name: str) -> set[str]:
    """Keys of the pods of this name that a scheduler has tried, or that wait there."""
    from stowplan.cli.server import fetch
    from stowplan.cli.shapes import Queue

    tried = _decisions(server, "/decisions", {"name": name, "limit": EVERY})["items"]
    waiting = (fetch(server, "/queue", Queue, {"pod": name, "limit": EVERY}) or {}).get("items", ())
    return {each["pod"] for each in (*tried, *waiting)}


def named_in_files(paths: Iterable[str], name: str) -> set[str]:
    """Keys of the pods of this name in files."""
    return {record["pod"] for path in paths for record in _read(path, name) if record["pod"].rpartition("/")[2] == name}


def _key(pod: str, files: tuple[str, ...], server: str) -> str:
    """NAMESPACE/POD of what was written. Raises UsageError, PodError and ServerError."""
    if pod.count("/") > 1 or not all(pod.split("/")):
        raise click.UsageError(f"{pod} is neither NAMESPACE/POD nor the name of a pod")
    return pod if "/" in pod else _only(pod, named_in_files(files, pod) if files else named_at_server(server, pod))


def _only(name: str, keys: set[str]) -> str:
    """The pod of this name, if there is one and no other. Raises PodError."""
    from stowplan.cli.pods import PodError

    if not keys:
        raise PodError(f"nothing is known here of a pod {name}: say NAMESPACE/{name}")
    if len(keys) > 1:
        raise PodError(f"{name} is the name of several pods: {', '.join(sorted(keys))}")
    return next(iter(keys))


def from_files(paths: Iterable[str], pod: str) -> tuple[list[dict[str, Any]], str | float | None]:
    """The records of a pod in files, and the time of the first record of all."""
    from stowplan.cli.server import epoch

    found: list[dict[str, Any]] = []
    since: float | None = None
    for path in paths:
        for place, record in enumerate(_read(path, pod)):
            if place == 0:
                since = epoch(record["time"]) if since is None else min(since, epoch(record["time"]))
            if record.get("pod") == pod:
                found.append(record)
    return sorted(found, key=lambda record: epoch(record["time"])), since


def _read(path: str, pod: str) -> Iterator[dict[str, Any]]:
    """As `_lines`. Raises ServerError where the file cannot be read."""
    from stowplan.cli.server import ServerError

    try:
        yield from _lines(path, pod)
    except OSError as error:
        raise ServerError(f"cannot read {path}: {error.strerror or error}") from None


def _lines(path: str, pod: str) -> Iterator[dict[str, Any]]:
    """The first record, and those that name the pod; a line that is not whole, as the last one may be, is passed over.

    Raises ServerError where a record is none that can be shown.
    """
    from stowplan.cli.server import ServerError
    from stowplan.cli.shapes import Record, WrongShapeError, checked

    begun = False
    with open(path, encoding="utf-8", errors="replace") as stream:  # noqa: PTH123 - a str
        for number, line in enumerate(stream, 1):
            if begun and pod not in line:  # reading all of it takes ten times as long
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict) and record.get("kind") == "Decision":
                begun = True
                try:
                    yield checked(record, Record)
                except WrongShapeError as error:
                    raise ServerError(f"line {number} of {path} is no record that can be read: {error}") from None


def _nothing(page: Page, pod: str, since: str | float | None, whose: str) -> None:
    from stowplan.cli.server import moment

    page.line(f"no record of {pod}: {whose} did not try it, or too long ago", bold=True, fg="yellow")
    page.line("there are no records at all" if since is None else f"records go back to {moment(since)}")
    page.line(f"`stowplan explain --cluster DUMP {pod}` judges it anew: that answers for today's cluster, not for what was decided")


def _state(page: Page, server: str, pod: str) -> None:
    """Where the pod waits, if it does."""
    from stowplan.cli.queue import sentence
    from stowplan.cli.server import fetch, now
    from stowplan.cli.shapes import Queue

    found = fetch(server, "/queue", Queue, {"pod": pod})
    for each in (found or {}).get("items", ()):
        page.line()
        page.line(sentence(each, now()), bold=True)
