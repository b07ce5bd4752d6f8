"""Options that verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

FORMATS = ("table", "wide", "json", "yaml")
NOW = "stowplan.now"
"""Where a click context keeps the moment that `--now` names, in epoch seconds."""
COMPLETE = "stowplan.complete"
"""Where a click context keeps that the dump holds all objects of the cluster."""


def _moment(context: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is None:
        return
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise click.BadParameter(f"{value} is no time such as 2026-11-30T18:00:00Z") from None
    context.meta[NOW] = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _complete(context: click.Context, _: click.Parameter, value: bool) -> None:
    context.meta[COMPLETE] = value


_POLICY = click.option(
    "--policy",
    metavar="FILE",
    help="KubeSchedulerConfiguration or SchedulerPolicy (YAML or JSON); left out: kube-scheduler's defaults.",
)
_CLUSTER = (
    click.option(
        "--cluster",
        "clusters",
        metavar="PATH",
        multiple=True,
        required=True,
        help="A cluster dump, made with `kubectl get` as `stowplan --help` shows: a file, a folder, or - (standard input). "
        "Repeatable.",
    ),
    click.option(
        "--now",
        metavar="TIME",
        expose_value=False,
        callback=_moment,
        help="The moment that rules see as `now`, such as 2026-11-30T18:00:00Z; left out: the present.",
    ),
    click.option(
        "--complete",
        is_flag=True,
        expose_value=False,
        callback=_complete,
        help="The dump is complete: kinds that it has none of are not missing.",
    ),
)


def inputs(command: Command) -> Command:
    """Add `--policy`, `--cluster` and `-o` to a verb: arguments `policy`, `clusters` and `form`."""
    return _POLICY(cluster(command))


def cluster(command: Command, formats: tuple[str, ...] = FORMATS) -> Command:
    """Add `--cluster` and `-o` to a verb: arguments `clusters` and `form`."""
    form = click.option(
        "-o", "--output", "form", type=click.Choice(formats), default="table", show_default=True, help="How to print the answer."
    )
    for option in reversed((*_CLUSTER, form)):
        command = option(command)
    return command
