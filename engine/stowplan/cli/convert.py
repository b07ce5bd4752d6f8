"""`stowplan convert`: older configurations, and legacy policies, as the newest version."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stowplan.edge.convert import Told

WRONG, UNREADABLE = 1, 3


@click.command("convert")
@click.option(
    "--to", "target", type=click.Choice(("v1", "policy")), default="v1", show_default=True, help="policy: a SchedulerPolicy."
)
@click.option("--write", "-w", is_flag=True, help="Change the files instead of printing what they become.")
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
def command(paths: tuple[str, ...], target: str, write: bool) -> int:
    """Convert KubeSchedulerConfigurations from v1alpha1 on, and `kind: Policy` (predicates and priorities), to v1.

    Comments and order stay. What changed, and what has no equivalent, goes to standard error, as does what is wrong with
    the result. A configuration in a ConfigMap, a List or among other documents is converted where it stands; a document that
    cannot be read stays as it is, and the others are converted.

    Exit codes: 0 converted, 1 the result is not valid, 2 wrong usage, 3 unreadable input.

    \b
      stowplan convert old.yaml > new.yaml
      stowplan convert --write configs/
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.edge.configurations import changeable, sources, write_whole
    from stowplan.text import Diagnostic, render

    if write and not all(map(changeable, paths)):
        raise click.UsageError("--write changes files; standard input and pipes are none")
    code, texts = 0, []
    for source in sources(dict.fromkeys(paths)):
        if isinstance(source, Diagnostic):
            click.echo(render(source), err=True)
            code = UNREADABLE if source.is_error else code
            continue
        from stowplan.edge.convert import convert

        converted = convert(source, target)
        if converted.errors:
            click.echo("\n".join(map(render, converted.errors)), err=True)
            code = code or WRONG
            if not converted.rest:
                continue
            click.echo(f"{source.name}: what cannot be read stays as it is", err=True)
        _tell(source.name, converted.told)
        code = code or _judge(source.name, converted.text)
        if write and converted.text != source.text:
            write_whole(source.name, converted.text.encode())
        if not converted.told and converted.text == source.text:
            click.echo(f"{source.name}: nothing to convert", err=True)
        texts.append(converted.text if converted.text.endswith("\n") else f"{converted.text}\n")
    if not write and texts:
        click.echo("---\n".join(texts), nl=False)
    return code


def _tell(name: str, told: Iterable[Told]) -> None:
    for change in told:
        place = f"{name}:{change.line}" if change.line else name
        click.echo(f"{place}: {'lost: ' if change.lost else ''}{change.text}", err=True)


def _judge(name: str, text: str) -> int:
    """Show what is wrong with a result."""
    from stowplan.policy.check import Options, check
    from stowplan.text import Source, render

    errors = [finding for finding in check(Source(f"{name} (converted)", text), Options()).diagnostics if finding.is_error]
    for finding in errors:
        click.echo(render(finding), err=True)
    return WRONG if errors else 0
