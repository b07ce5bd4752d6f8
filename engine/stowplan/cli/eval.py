"""`stowplan eval`: one expression over a cluster dump, for every node."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.options import inputs

if TYPE_CHECKING:
    from stowplan.cli.inputs import Inputs
    from stowplan.cli.output import Page
    from stowplan.objects import Pod
    from stowplan.policy.tryout import Tried, Tryout

ROWS = 50
"""Nodes that are shown unless all are asked for."""
MOST_VALUES = 10
LONGEST = 160
"""Characters of a value that are shown unless all are asked for."""
DIGITS = 6


@click.command("eval")
@inputs
@click.option(
    "--pod", "name", metavar="NAMESPACE/POD", help="The pod that the expression is about; left out: the only pending one."
)
@click.option("--profile", metavar="NAME", help="The profile whose variables the expression may use; left out: the first.")
@click.option(
    "--engine",
    type=click.Choice(("stowplan", "cel-python")),
    default="stowplan",
    help="cel-python: ask that implementation instead, as a second opinion on the plain language.",
)
@click.argument("expression")
def command(  # noqa: PLR0913, PLR0917 - an argument an option
    policy: str | None, clusters: tuple[str, ...], form: str, name: str | None, profile: str | None, engine: str, expression: str
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
    tried, how = _tried(found, loaded, pod, engine)
    _remark(found, loaded)
    if form in ("json", "yaml"):
        from stowplan.cli.output import document

        document(_document(expression, found, tried) | {"evaluated": how}, form)
    else:
        _show(found, tried, how, wide=form == "wide")
    return int(any(_failed(one) for one in tried))


def _tried(found: Tryout, loaded: Inputs, pod: Pod, engine: str) -> tuple[list[Tried], str]:
    """The values, and how they were found."""
    if engine == "stowplan":
        return list(found.run(loaded.store, pod)), found.how(loaded.store, pod)
    from stowplan.edge.secondopinion import MissingError, second_opinion

    try:
        return list(second_opinion(found, loaded.store, pod)), "rows: by cel-python"
    except MissingError as missing:
        raise click.UsageError(str(missing)) from None


def _profile(loaded: Inputs, name: str | None) -> Any:
    profiles = loaded.policy.configuration.versions
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
    from stowplan.policy.guards import NONE, unguarded
    from stowplan.policy.rule_lints import lints, missing, unknown_labels
    from stowplan.text import Code, Diagnostic, Span, render

    program = found.expressions.value
    reads = unguarded(program.checked, NONE, {})
    remarks = [*lints(program), *(missing(node, place, "the expression then has no value") for _, node, place in reads)]
    strange = [
        Diagnostic(lint.code, lint.severity, lint.message, Span(program.source, lint.start, lint.end), "", (lint.note,))
        for lint in remarks
        if lint.code is not Code.UNKNOWN_LABEL  # the labels of the nodes say more
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
    answer["reads"] = list(found.expressions.reading.members)
    answer["values"] = [
        ({} if one.node is None else {"node": one.node})
        | ({"error": one.value.message} if _failed(one) else {"value": shown(one.value)})
        | {"cost": one.cost}
        for one in tried
    ]
    return answer


def _show(found: Tryout, tried: list[Tried], how: str, *, wide: bool) -> None:
    from stowplan.cli.output import Page

    page = Page()
    failed = sum(map(_failed, tried))
    reads = found.expressions.reading.members
    of_node = bool(tried) and tried[0].node is not None
    about = f"{len(tried)} nodes" if of_node else "does not depend on the node"
    page.line(
        f"{found.type}; {about}; {failed} errors; cost at most {max((one.cost for one in tried), default=0)} a node", bold=True
    )
    page.line(f"evaluated {how if how.startswith('once') else f'by {how}'}")
    if reads:
        page.line(f"reads of the node: {', '.join(reads)}")
    texts = [_text(one) for one in tried]
    cut = any(len(text) > LONGEST for text in texts) and not wide
    _values(page, texts, tried, of_node=of_node, wide=wide)
    if of_node:
        _nodes(page, texts, tried, wide=wide)
    if cut:
        page.line("long values are cut: -o wide or -o json has all of them")
    page.write()


def _values(page: Page, texts: list[str], tried: list[Tried], *, of_node: bool, wide: bool) -> None:
    """How often each value occurs, unless each occurs once and stands beside its node anyway."""
    from stowplan.cli.tables import Table

    values = Counter(texts)
    if of_node and len(values) == len(tried):
        return
    page.heading("VALUES" if of_node else "VALUE")
    table = Table(["COUNT", "VALUE"] if of_node else ["VALUE", "COST"], right=frozenset({0} if of_node else {1}))
    for text, count in values.most_common(None if wide else MOST_VALUES):
        if of_node:
            table.add(count, _cut(text, wide))
        else:
            table.add(_cut(text, wide), tried[0].cost)
    page.table(table)
    if len(values) > MOST_VALUES and not wide:
        page.line(f"... and {len(values) - MOST_VALUES} rarer values (-o wide)")


def _nodes(page: Page, texts: list[str], tried: list[Tried], *, wide: bool) -> None:
    from stowplan.cli.tables import Table

    page.heading("NODES")
    table = Table(["NODE", "VALUE", "COST"], right=frozenset({2}))
    for one, text in list(zip(tried, texts, strict=True))[: None if wide else ROWS]:
        table.add(one.node, _cut(text, wide), one.cost)
    page.table(table)
    if len(tried) > ROWS and not wide:
        page.line(f"... and {len(tried) - ROWS} more nodes (-o wide)")


def _cut(text: str, wide: bool) -> str:
    return text if wide or len(text) <= LONGEST else f"{text[: LONGEST - 4]} ..."


def _text(one: Tried) -> str:
    import json

    from stowplan.policy.tryout import shown

    return f"error: {one.value.message}" if _failed(one) else json.dumps(_rounded(shown(one.value)), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    """The value with its doubles as precise as anyone reads them: 6 digits after the point, of small ones 6 in all."""
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    if not isinstance(value, float):
        return value
    return round(value, DIGITS) if abs(value) >= 0.001 else float(f"{value:.{DIGITS}g}")
