"""`stowplan test`: runs the unit tests of policies."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

import click

if TYPE_CHECKING:
    from pathlib import Path

    from stowplan.edge.stowtest import Report


@click.command("test")
@click.option("--junit", metavar="FILE", type=click.Path(dir_okay=False), help="Write the results as JUnit XML too.")
@click.option("--record", is_flag=True, help="First write down what comes out of the tests that expect nothing.")
@click.option("--watch", is_flag=True, help="Run again whenever a file in these places changes.")
@click.option("-v", "--verbose", is_flag=True, help="Name the tests that pass too.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def command(paths: tuple[str, ...], junit: str | None, record: bool, watch: bool, verbose: bool) -> int:
    """Run policy tests: files, or all *.stowtest.yaml below a folder.

    Exits with 1 if a test fails, with 3 if a file cannot be run. Rules that no test makes a difference with are named.

    \b
      stowplan test profiles/
      stowplan test profiles/tenants.stowtest.yaml --junit report.xml
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    if record:
        _record(paths)
    code, inputs = _run(paths, junit, verbose)
    while watch:
        _wait(paths, inputs)
        click.clear()
        code, inputs = _run(paths, junit, verbose)
    return code


def _record(paths: tuple[str, ...]) -> None:
    from stowplan.edge.stowtest import files, record

    for path in files(paths):
        written = record(path)
        if written:
            click.echo(f"{path}: wrote down what comes out of {written} {'test' if written == 1 else 'tests'}")


def _run(paths: tuple[str, ...], junit: str | None, verbose: bool) -> tuple[int, set[Path]]:
    """The exit code, and the files that the results follow from."""
    from stowplan.edge.stowtest import SUFFIX, files, run_file

    reports = [run_file(path) for path in files(paths)]
    if not reports:
        raise click.UsageError(f"no *{SUFFIX} file in {', '.join(paths)}")
    for report in reports:
        _show(report, verbose)
    tests, failed = sum(len(report.results) for report in reports), sum(report.failed for report in reports)
    broken = sum(bool(report.broken) for report in reports)
    tail = f", {broken} {'file' if broken == 1 else 'files'} could not be run" if broken else ""
    click.echo(f"{tests - failed} of {tests} tests passed in {len(reports)} {'file' if len(reports) == 1 else 'files'}{tail}")
    if junit is not None:
        from pathlib import Path

        Path(junit).write_text(_junit(reports), encoding="utf-8")
    return 3 if broken else int(failed > 0), {path for report in reports for path in report.inputs}


def _show(report: Report, verbose: bool) -> None:
    from stowplan.cli.tables import printable
    from stowplan.text import render

    for diagnostic in report.broken:
        click.echo(render(diagnostic))
    for result in report.results:
        if result.failures:
            click.echo(printable(f"FAILED {report.path}: {result.name}"))
            for diagnostic in result.failures:
                click.echo("  " + render(diagnostic).replace("\n", "\n  "))
        elif verbose:
            click.echo(printable(f"passed {report.path}: {result.name}"))
    if report.unfired:
        click.echo(printable(f"{report.path}: no test makes a difference with: {', '.join(report.unfired)}"))


def _junit(reports: list[Report]) -> str:
    """The results in the form that CI systems read."""
    from stowplan.text import render_all

    suites = []
    for report in reports:
        cases = [
            f"<testcase classname={quoteattr(report.path)} name={quoteattr(_plain(result.name))}>"
            + (f"<failure>{escape(_plain(render_all(result.failures)))}</failure>" if result.failures else "")
            + "</testcase>"
            for result in report.results
        ]
        if report.broken:
            error = f"<error>{escape(_plain(render_all(report.broken)))}</error>"
            cases.append(f'<testcase classname={quoteattr(report.path)} name="the file">{error}</testcase>')
        counts = f'tests="{len(cases)}" failures="{report.failed}" errors="{int(bool(report.broken))}"'
        suites.append(f"<testsuite name={quoteattr(report.path)} {counts}>{''.join(cases)}</testsuite>")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>{"".join(suites)}</testsuites>\n'


def _stamps(paths: tuple[str, ...], inputs: set[Path]) -> dict[Path, float]:
    """When the files that matter were last written: tests, new ones among them, and what they name."""
    from stowplan.edge.stowtest import files

    found = {}
    for path in {*files(paths), *inputs}:
        with suppress(OSError):  # a file that is just being replaced
            found[path] = path.stat().st_mtime
    return found


def _wait(paths: tuple[str, ...], inputs: set[Path]) -> None:
    """Until one of the files changes."""
    import time

    before = _stamps(paths, inputs)
    while _stamps(paths, inputs) == before:
        time.sleep(0.3)


def _plain(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
