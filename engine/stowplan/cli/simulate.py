"""`stowplan simulate`: where every pending pod would go."""

from __future__ import annotations

import click

from stowplan.cli.options import inputs


@click.command("simulate")
@inputs
@click.option(
    "--preemption",
    type=click.Choice(("report", "apply")),
    default="report",
    show_default=True,
    help="What to do when a pod fits nowhere and others could make room: say which, or evict them in the simulated cluster.",
)
def command(policy: str | None, clusters: tuple[str, ...], form: str, preemption: str) -> int:
    """Place the pending pods in queue order, each seeing the ones before it; ties go to the first node by name.

    With --preemption apply, evicted pods count as deleted at once and are not scheduled again: what their controllers would
    create in their place is not part of the dump. The pod that they made room for is nominated to their node and tried
    again at once; pods that were tried before it are not tried again.

    Exits with 1 if some pod that was tried does not fit. Nothing is changed anywhere.

    \b
      kubectl get nodes,pods,services,replicasets,statefulsets,namespaces,priorityclasses -A -o json |
        stowplan simulate --cluster -
      stowplan simulate --policy scheduler.yaml --cluster dump.json -o wide
      stowplan simulate --cluster dump.json --preemption apply
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import load
    from stowplan.cli.notices import notify
    from stowplan.cli.progress import Bar

    loaded = load(policy, clusters)
    notify(loaded)
    from stowplan.loop.simulate import simulate

    with Bar("placing pods") as bar:
        simulation = simulate(loaded.policy, loaded.store, bar.reach, preemption)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        document(simulation.to_json(), form)
    else:
        from stowplan.cli.simulated import show

        show(simulation, wide=form == "wide")
    return 1 if simulation.unplaced else 0
