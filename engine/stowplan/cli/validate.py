"""`stowplan validate`: everything that is wrong with scheduler configurations, and how to mend it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stowplan.cli.validate_forms import Subject
    from stowplan.policy.check import Options

FORMS = ("full", "concise", "json", "sarif", "junit", "github")
WRONG, UNREADABLE = 1, 3


def _minor(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    """The minor version in `1.37`, `v1.37` or `1.37.2`."""
    from stowplan.profile.versions import NEWEST, OLDEST

    parts = value.removeprefix("v").split(".")
    if parts[0] != "1" or len(parts) < 2 or not parts[1].isdigit() or not OLDEST <= int(parts[1]) <= NEWEST:
        raise click.BadParameter(f"known are 1.{OLDEST} to 1.{NEWEST}")
    return int(parts[1])


@click.command("validate")
@click.option("--format", "form", type=click.Choice(FORMS), default="full", show_default=True, help="How to print the findings.")
@click.option("--compat", is_flag=True, help="Refuse exactly what kube-scheduler refuses, and take each file as it is.")
@click.option("--strict", is_flag=True, help="Exit with 1 for warnings too.")
@click.option("--hints", is_flag=True, help="Also tell what each score counts for, and which defaults pull the other way.")
@click.option("--effective", is_flag=True, help="Print the plugins that run at each extension point, against the defaults.")
@click.option("--fix", is_flag=True, help="Mend in the files what can be mended without a doubt; comments and order stay.")
@click.option(
    "--kube-version",
    "minor",
    default="1.37",
    show_default=True,
    callback=_minor,
    metavar="1.25..1.37",
    help="The kube-scheduler that is to read the files.",
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def command(  # noqa: PLR0913, PLR0917 - an argument an option
    paths: tuple[str, ...], form: str, compat: bool, strict: bool, hints: bool, effective: bool, fix: bool, minor: int
) -> int:
    """Check KubeSchedulerConfigurations and SchedulerPolicies: every mistake at once, with its place and its remedy.

    A PATH is a file, a folder, or - (standard input). Configurations are found in ConfigMaps, Lists and among other documents
    too. A comment `# stowplan: ignore[STW234]` silences a finding of its line or the next; `stowplan rule STW234` explains it.

    Exit codes: 0 fine, 1 something is wrong, 2 wrong usage, 3 unreadable input.

    \b
      stowplan validate scheduler.yaml
      kubectl -n kube-system get configmap scheduler -o yaml | stowplan validate --hints -
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.validate_forms import show
    from stowplan.policy.check import Options

    subjects = _subjects(paths, Options(minor, compat, hints), fix)
    if effective and form in ("full", "concise"):
        from stowplan.cli.validate_effective import show_effective

        show_effective(subjects, minor)
    show(subjects, form, effective=effective)
    if any(subject.unreadable for subject in subjects):
        return UNREADABLE
    bad = ("error", "warning") if strict else ("error",)
    return WRONG if any(d.severity.value in bad for subject in subjects for d in subject.diagnostics) else 0


def _subjects(paths: tuple[str, ...], options: Options, fix: bool) -> list[Subject]:
    from stowplan.cli.validate_forms import Subject
    from stowplan.edge.configurations import changeable, sources
    from stowplan.policy.check import check
    from stowplan.text import Diagnostic

    if fix and not all(map(changeable, paths)):
        raise click.UsageError("--fix changes files; standard input and pipes are none")
    subjects = []
    for source in sources(dict.fromkeys(paths)):
        if isinstance(source, Diagnostic):
            subjects.append(Subject("", (source,), unreadable=source.is_error))
            continue
        checked = check(source, options)
        if fix:
            from stowplan.cli.validate_fix import mend

            checked = mend(source, checked, options)
        subjects.append(Subject(source.name, checked.diagnostics, checked.examined))
    return subjects
