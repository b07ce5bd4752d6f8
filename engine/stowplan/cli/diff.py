"""`stowplan diff`: what a change of policy does, before it is made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stowplan.cli.options import FORMATS, cluster

if TYPE_CHECKING:
    from stowplan.policy.compile import Policy

DEFAULT = "default"
"""Stands for kube-scheduler's defaults; a file of this name is `./default`."""
STANDARD_INPUT = "-"
MOST = {"some": 5000, "all": 1 << 62, "no": None}
"""Most running pods that are judged: some seconds' work, everything, nothing."""


@click.command("diff")
@partial(cluster, formats=(*FORMATS, "html"))
@click.option(
    "--running",
    type=click.Choice(tuple(MOST)),
    default="some",
    show_default=True,
    help="Pods that run already: judge each anew, as if it were pending and all others stayed; `some`: of many pods a sample.",
)
@click.option("--html", "page", metavar="FILE", help="Also write the answer as one HTML page that needs nothing else.")
@click.argument("old")
@click.argument("new")
def command(  # noqa: PLR0913, PLR0917 - an argument an option
    old: str, new: str, clusters: tuple[str, ...], form: str, running: str, page: str | None
) -> int:
    """Compare two policies on one cluster: pods that move, newly pending and newly placed ones, scores, and utilisation.

    OLD and NEW are files as for --policy, - for standard input, or the word `default` for kube-scheduler's defaults. Pending pods
    are placed under each policy as `simulate` does it, preemption reported only. Nothing is changed anywhere.

    Exit codes: 0 no pod fares differently, 1 some pod does, 2 wrong usage, 3 unreadable input, 4 internal error.

    \b
      stowplan diff default scheduler.yaml --cluster dump.json
      stowplan diff old.yaml new.yaml --cluster dump.json --html diff.html
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import Inputs, check, compiled_policy, read
    from stowplan.cli.notices import notify
    from stowplan.cli.progress import Bar

    _once((old, new, *clusters))
    check((old, new, page, *clusters))
    policies = [compiled_policy(None if path == DEFAULT else path) for path in (old, new)]
    store, report = read(clusters, _kept(policies) if running != "no" else ())
    notify(Inputs(policies[0], store, report), also=policies[1:])
    from dataclasses import replace

    from stowplan.loop.compare import Wanted, compare

    with Bar("comparing") as bar:
        wanted = Wanted(MOST[running], sheets=form == "html" or page is not None)
        comparison = compare(policies[0], policies[1], store, wanted, bar.reach)
    comparison = replace(comparison, titles=(_title(old), _title(new)))
    if page is not None or form == "html":
        from stowplan.ui.diffpage import diff_page

        text = diff_page(comparison)
        if page is not None:
            Path(page).write_text(text, encoding="utf-8")
        if form == "html":
            click.echo(text, nl=False)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        document(comparison.to_json(), form)
    elif form != "html":
        from stowplan.cli.diffed import show

        show(comparison, wide=form == "wide")
    return int(comparison.differs)


def _once(paths: Sequence[str]) -> None:
    """Standard input can be read once."""
    if paths.count(STANDARD_INPUT) > 1:
        raise click.UsageError("- is standard input, which can be read once: name a file for the others")


def _kept(policies: Sequence[Policy]) -> Sequence[str]:
    """Running pods whose whole objects are needed: all of them where rules may ask for what scheduling does not read."""
    from stowplan.edge.load import EVERY_POD

    profiles = [profile for policy in policies for profile in policy.profiles.values()]
    divided = any(policy.rollout is not None and policy.rollout.personal for policy in policies)
    personal = divided or any(plugin.personal for profile in profiles for plugin in profile.plugins.values())
    return (EVERY_POD,) if personal else ()


def _title(path: str) -> str:
    return {DEFAULT: "kube-scheduler's defaults", STANDARD_INPUT: "standard input"}.get(path, path)
