"""`stowplan schema`: the JSON Schema of a kind, for editors and other validators."""

from __future__ import annotations

import click

_KINDS = ("KubeSchedulerConfiguration", "SchedulerPolicy")


@click.command("schema")
@click.option(
    "--draft",
    type=click.Choice(("2020-12", "07")),
    default="2020-12",
    show_default=True,
    help="Which draft of JSON Schema; editors want 07.",
)
@click.argument("kind", type=click.Choice(_KINDS, case_sensitive=False), default=_KINDS[0])
def command(kind: str, draft: str) -> None:
    """Print the JSON Schema of KubeSchedulerConfiguration, or of SchedulerPolicy.

    \b
      stowplan schema --draft 07 > scheduler.schema.json
      # in the first line of a configuration:
      # yaml-language-server: $schema=scheduler.schema.json
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    import json

    from stowplan.policy.schemas import schema

    click.echo(json.dumps(schema(kind, draft), indent=2, ensure_ascii=False))
