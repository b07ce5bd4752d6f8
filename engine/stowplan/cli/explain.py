"""`stowplan explain`: why a pod goes where it goes, or why it goes nowhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.options import inputs

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.cli.pods import Subject


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

    A pod that runs already is judged as if it were pending. A name without its namespace will do if it is unique. Exits
    with 1 if a pod does not fit.

    \b
      stowplan explain --cluster dump.json web/api-7d9
      stowplan explain --policy scheduler.yaml --cluster dump.json web/api-7d9 --all-nodes -o wide
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import load
    from stowplan.cli.notices import notify
    from stowplan.cli.pods import find

    loaded = load(policy, clusters, pods)
    subjects = [find(loaded.store, name) for name in dict.fromkeys(pods)]
    notify(loaded)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        content = _document(loaded, subjects)
        document(content, form)
        return int(any("skipped" not in pod and not pod.get("best") for pod in content["pods"]))
    from stowplan.cli.explained import View, show

    return show(loaded.policy, loaded.store, subjects, View(form == "wide", all_nodes, top))


def _document(loaded: Inputs, subjects: list[Subject]) -> dict[str, Any]:
    """The explanation of each pod, one after the other; `boundTo` marks those that run and were judged anew.

    `details` has what lies behind the rejections, by plugin.
    """
    from stowplan.cli.pods import pending
    from stowplan.policy.attempt import attempt
    from stowplan.policy.details import details
    from stowplan.policy.explain import attempt_json, explain
    from stowplan.policy.extenders import left_out_json

    judged = []
    answer: dict[str, Any] = explain(loaded.policy, loaded.store, ()).to_json()
    for subject in subjects:
        with pending(loaded.store, subject):
            found = attempt(loaded.policy, loaded.store, loaded.store.pending[subject.pod.key])
            pod = attempt_json(found, loaded.store)
            more = details(loaded.policy, loaded.store, found)
        judged += [found.pod] if found.skipped is None else []
        answer["pods"].append(pod | ({"details": more} if more else {}) | ({"boundTo": subject.node} if subject.node else {}))
    return answer | left_out_json(loaded.policy, judged)
