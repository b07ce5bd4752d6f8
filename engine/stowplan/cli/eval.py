"""`stowplan eval`: one expression over a cluster dump, for every node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.options import inputs

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.objects import Pod
    from stowplan.policy.tryout import Tried, Tryout

ROWS = 50
"""Nodes that are shown unless all are asked for."""


@click.command("eval")
@inputs
@click.option(
    "--pod", "name", metavar="NAMESPACE/POD", help="The pod that the expression is about; left out: the only pending one."
)
@click.option("--profile", metavar="NAME", help="The profile whose variables the expression may use; left out: the first.")
@click.argument("expression")
def command(  # noqa: PLR0913, PLR0917 - an argument an option
    policy: str | None, clusters: tuple[str, ...], form: str, name: str | None, profile: str | None, expression: str
) -> int:
    """Evaluate a CEL expression for every node: its value or error, and its cost in Kubernetes' units.

    Exits with 1 if there is an error for some node, with 3 if the expression is wrong.

    \b
      stowplan eval --cluster dump.json 'node.free.cpu / node.allocatable.cpu'
      stowplan eval --cluster dump.json --pod web/api-7d9 'node.labels[?"pool"].orValue("") == pod.labels.tenant'
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.inputs import load
    from stowplan.policy.compile import PolicyError
    from stowplan.policy.tryout import Tryout, tryout
    from stowplan.text import Source

    loaded = load(policy, clusters, [name] if name else [])
    found = tryout(Source("expression", expression), _profile(loaded, profile))
    if not isinstance(found, Tryout):
        raise PolicyError(found)
    pod = _pod(loaded, name, found)
    tried, how = list(found.run(loaded.store, pod)), found.how(loaded.store, pod)
    _remark(found, loaded)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        document(_document(expression, found, tried) | {"evaluated": how}, form)
    else:
        _show(found, tried, how, wide=form == "wide")
    return int(any(_failed(one) for one in tried))


def _profile(loaded: Inputs, name: str | None) -> Any:
    profiles = loaded.policy.configuration.profiles
    found = next((profile for profile in profiles if name in (None, profile.scheduler_name)), None)
    if found is None:
        known = ", ".join(str(profile.scheduler_name) for profile in profiles)
        raise click.UsageError(f"there is no profile {name}; profiles are {known}")
    return found


def _pod(loaded: Inputs, name: str | None, found: Tryout) -> Pod:
    """The pod that was named, the only pending one, or any if the expression looks at none."""
    from stowplan.cli.pods import find
    from stowplan.objects import read

    if name is not None:
        return find(loaded.store, name).pod
    pending = list(loaded.store.pending.values())
    if found.of_pod and len(pending) != 1:
        raise click.UsageError(f"the expression is about a pod, and {len(pending)} are pending: name one with --pod")
    blank = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "none", "namespace": "default"}, "spec": {"priority": 0}}
    pod: Any = pending[0] if pending else read(blank)
    return pod  # type: ignore[no-any-return]


def _remark(found: Tryout, loaded: Inputs) -> None:
    """What is strange about the expression, on standard error."""
    from stowplan.policy.rule_lints import lints, unknown_labels
    from stowplan.text import Diagnostic, Span, render

    program = found.expressions.value
    strange = [
        Diagnostic(lint.code, lint.severity, lint.message, Span(program.source, lint.start, lint.end), "", (lint.note,))
        for lint in lints(program)
    ]
    for diagnostic in [*strange, *unknown_labels(found.expressions, loaded.store)]:
        click.echo(render(diagnostic), err=True)


def _failed(one: Tried) -> bool:
    from stowplan.cel import CelError

    return isinstance(one.value, CelError)


def _document(expression: str, found: Tryout, tried: list[Tried]) -> dict[str, Any]:
    from stowplan.policy.tryout import shown

    answer: dict[str, Any] = {"apiVersion": "stowplan.io/v1alpha1", "kind": "Evaluation", "expression": expression}
    answer["type"] = str(found.type)
    answer["reads"] = sorted({column.family for column in found.expressions.reading.columns})
    answer["values"] = [
        ({} if one.node is None else {"node": one.node})
        | ({"error": one.value.message} if _failed(one) else {"value": shown(one.value)})
        | {"cost": one.cost}
        for one in tried
    ]
    return answer


def _show(found: Tryout, tried: list[Tried], how: str, *, wide: bool) -> None:
    from stowplan.cli.output import Page
    from stowplan.cli.tables import Table

    page = Page()
    failed = sum(map(_failed, tried))
    reads = sorted({column.family for column in found.expressions.reading.columns})
    about = f"{len(tried)} nodes" if tried[:1] and tried[0].node is not None else "does not depend on the node"
    page.line(
        f"{found.type}; {about}; {failed} errors; cost at most {max((one.cost for one in tried), default=0)} a node", bold=True
    )
    page.line(f"evaluated by {how}")
    if reads:
        page.line(f"reads of the node: {', '.join(reads)}")
    values = Counter(_text(one) for one in tried)
    page.heading("VALUES")
    table = Table(["COUNT", "VALUE"], right=frozenset({0}))
    for text, count in values.most_common(None if wide else 10):
        table.add(count, text)
    page.table(table)
    if len(values) > 10 and not wide:
        page.line(f"... and {len(values) - 10} rarer values (-o wide)")
    if tried and tried[0].node is not None:
        page.heading("NODES")
        table = Table(["NODE", "VALUE", "COST"], right=frozenset({2}))
        for one in tried[: None if wide else ROWS]:
            table.add(one.node, _text(one), one.cost)
        page.table(table)
        if len(tried) > ROWS and not wide:
            page.line(f"... and {len(tried) - ROWS} more nodes (-o wide)")
    page.write()


def _text(one: Tried) -> str:
    import json

    from stowplan.policy.tryout import shown

    return f"error: {one.value.message}" if _failed(one) else json.dumps(shown(one.value), ensure_ascii=False)
