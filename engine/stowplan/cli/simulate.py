"""`stowplan simulate`: where every pending pod would go."""

from __future__ import annotations

import click

from stowplan.cli.options import inputs


@click.command("simulate")
@inputs
def command(policy: str | None, clusters: tuple[str, ...], form: str) -> int:
    """Place the pending pods in queue order, each seeing the ones before it; ties go to the first node by name.

    Exits with 1 if some pod that was tried does not fit. Nothing is changed anywhere.

    \b
      kubectl get nodes,pods -A -o json | stowplan simulate --cluster -
      stowplan simulate --policy scheduler.yaml --cluster dump.json -o wide
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import load
    from stowplan.cli.notices import notify
    from stowplan.cli.progress import Bar

    loaded = load(policy, clusters)
    notify(loaded)
    from stowplan.loop.simulate import simulate

    with Bar("placing pods") as bar:
        simulation = simulate(loaded.policy, loaded.store, bar.reach)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        document(simulation.to_json(), form)
    else:
        from stowplan.cli.simulated import show

        show(simulation, wide=form == "wide")
    return 1 if simulation.unplaced else 0
