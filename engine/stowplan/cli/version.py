"""`stowplan version`: which version this is, and whose behaviour it has."""

from __future__ import annotations

import click

from stowplan import __version__

KUBERNETES = "1.37.2"
"""The kube-scheduler whose decisions are reproduced."""


@click.command("version")
@click.option("-o", "--output", "form", type=click.Choice(("text", "json")), default="text", show_default=True)
def command(form: str) -> None:
    """Print the version and the kube-scheduler that it agrees with.

    \b
      stowplan version -o json
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    if form == "json":
        import json

        click.echo(json.dumps({"version": __version__, "kubeScheduler": KUBERNETES}))
    else:
        click.echo(f"stowplan {__version__} (decides as kube-scheduler {KUBERNETES})")
