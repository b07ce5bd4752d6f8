"""Options that verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

Command = Callable[..., Any]

FORMATS = ("table", "wide", "json", "yaml")

_OPTIONS = (
    click.option(
        "--policy",
        metavar="FILE",
        help="KubeSchedulerConfiguration (YAML or JSON); left out: kube-scheduler's defaults.",
    ),
    click.option(
        "--cluster",
        "clusters",
        metavar="PATH",
        multiple=True,
        required=True,
        help="What `kubectl get nodes,pods,... -A -o json` (or yaml) prints: a file, a folder, or - (standard input). Repeatable.",
    ),
    click.option(
        "-o", "--output", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print the answer."
    ),
)


def inputs(command: Command) -> Command:
    """Add `--policy`, `--cluster` and `-o` to a verb: arguments `policy`, `clusters` and `form`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
