"""`stowplan explain`: why a pod goes where it goes, or why it goes nowhere."""

from __future__ import annotations

import click

from stowplan.cli.options import inputs


@click.command("explain")
@inputs
@click.option(
    "--all-nodes", is_flag=True, help="List every node: its total, or the first plugin that rejects it (-o wide: all of them)."
)
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show the scores of N nodes; left out: 3, or what fits the width.")
@click.argument("pods", nargs=-1, required=True, metavar="NAMESPACE/POD...")
def command(  # noqa: PLR0913, PLR0917 - an argument an option
    policy: str | None, clusters: tuple[str, ...], form: str, pods: tuple[str, ...], all_nodes: bool, top: int | None
) -> int:
    """Judge a pod on every node: the verdict, what decided it and by how much, and what would flip it.

    A pod that runs already is judged as if it were pending, one that is gated as if it were not. A name without its namespace
    will do if it is unique. Exits with 1 if a pod that is tried does not fit.

    \b
      stowplan explain --cluster dump.json web/api-7d9
      stowplan explain --policy scheduler.yaml --cluster dump.json web/api-7d9 --all-nodes -o wide
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import load
    from stowplan.cli.notices import notify
    from stowplan.cli.pods import find

    loaded = load(policy, clusters, pods)
    subjects = [find(loaded.store, name) for name in dict.fromkeys(pods)]
    notify(loaded, [subject.pod for subject in subjects])
    if form in ("json", "yaml"):
        from stowplan.cli.output import document
        from stowplan.policy.explain import explain

        content = explain(loaded.policy, loaded.store, [subject.pod.key for subject in subjects]).to_json(analysis=True)
        document(content, form)
        return int(any("skipped" not in pod and not pod.get("best") for pod in content["pods"]))
    from stowplan.cli.explained import View, show

    return show(loaded.policy, loaded.store, subjects, View(form == "wide", all_nodes, top))
