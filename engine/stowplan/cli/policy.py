"""`stowplan policy`: the policy of a running scheduler, the good ones before it, and the way back to one of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from stowplan.cli.server import server

if TYPE_CHECKING:
    from stowplan.edge.policies.configmap import Reference
    from stowplan.edge.policies.remote import History

FORM = click.option(
    "-o", "--output", "form", type=click.Choice(("table", "json", "yaml")), default="table", show_default=True,
    help="How to print the answer.",
)  # fmt: skip


def _reference(_context: click.Context, _parameter: click.Parameter, value: str) -> Reference:
    from stowplan.edge.policies.configmap import Reference

    found = Reference.parse(value)
    if found is None:
        raise click.BadParameter(f"{value} is not NAMESPACE/NAME or NAMESPACE/NAME/KEY")
    return found


def _connection(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that say which ConfigMap, and where."""
    options = (
        click.option(
            "--policy-configmap",
            "reference",
            metavar="NAMESPACE/NAME[/KEY]",
            default="stowplan-system/stowplan-policy",
            show_default=True,
            callback=_reference,
            help="The ConfigMap that the scheduler follows.",
        ),
        click.option("--kubeconfig", metavar="FILE", help="How to reach the API server."),
        click.option("--context", metavar="NAME", help="The context of the kubeconfig."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _asked(reference: Reference, kubeconfig: str | None, context: str | None, work: Callable[[History], Any]) -> Any:
    """Do something at the API server. Raises ServerError, and what the work raises."""
    from stowplan.cli.server import ServerError
    from stowplan.edge.policies import remote

    try:
        return remote.at_server(reference, kubeconfig, context, work)
    except remote.RemoteError as error:
        raise ServerError(str(error)) from None


@click.group("policy")
def command() -> None:
    """The policy of a running scheduler: what is in force, what was before, and the way back.

    \b
      stowplan policy status
      stowplan policy history --policy-configmap stowplan-system/stowplan-policy
      stowplan policy rollback --to 7
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines


@command.command("status")
@server
@FORM
def status(server: str, form: str) -> int:
    """Show the policy in force, a newer text that was refused, and how the versions of a rollout compare.

    Exits with 1 where a text was refused or is missing.

    \b
      stowplan policy status
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli.server import ServerError, fetch
    from stowplan.cli.shapes import PolicyStatus

    told = fetch(server, "/policy", PolicyStatus)
    if told is None:
        raise ServerError(f"{server} has no /policy: is this a scheduler?")
    code = int(told["generation"] is None or "rejected" in told or "trouble" in told)
    if form != "table":
        from stowplan.cli.output import document

        document(told, form)
        return code
    _status(told)
    return code


def _status(told: dict[str, Any]) -> None:
    from stowplan.cli import rollout, standby
    from stowplan.cli.output import Page
    from stowplan.cli.server import epoch, moment, now, span
    from stowplan.edge.policies.naming import named

    page = Page()
    standby.show(page, told)
    if told["generation"] is None:
        reason = f": {told['waits']}" if "waits" in told else " for a good one"
        page.line(f"no policy yet: the scheduler waits{reason}", bold=True, fg="red")
    else:
        source = told.get("source") or "kube-scheduler's defaults"
        known = named(told["generation"], told["hash"] or "", told.get("version"))
        page.line(f"{known}, from {source}", bold=True, fg="green")
        if "since" in told:
            page.line(f"in force since {moment(told['since'])} ({span(now() - epoch(told['since']))})")
        page.line(f"profiles: {', '.join(told.get('profiles', ()))}")
    for warning in told.get("warnings", ()):
        page.line(warning, fg="yellow")
    for name, count in told.get("unserved", {}).items():
        text = f'no profile has schedulerName "{name}" any more; pods that wait for it: {count}'
        page.line(text, fg="red" if count else "yellow")
    if "rejected" in told:
        refused = told["rejected"]
        page.heading(f"REFUSED {moment(refused['time'])}: {refused['source']}")
        for error in refused["errors"]:
            page.line(f"  {error}", fg="red")
    if "trouble" in told:
        page.line(told["trouble"], fg="red")
    if "rollout" in told:
        rollout.show(page, told["rollout"])
    page.write()


@command.command("history")
@_connection
@FORM
def history(reference: Reference, kubeconfig: str | None, context: str | None, form: str) -> int:
    """List the last good versions of a policy, newest first.

    \b
      stowplan policy history
      stowplan policy history --policy-configmap team/scheduler-policy
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines

    async def look(history: History) -> Any:
        return await history.known(), await history.current()

    known, current = _asked(reference, kubeconfig, context, look)
    now_in = current.digest if current is not None else ""
    items = [each.to_json() | {"current": each.entry.hash == now_in} for each in reversed(known.versions)]
    if form != "table":
        from stowplan.cli.output import document

        notes = {"notes": list(known.wrong)} if known.wrong else {}
        document({"configmap": f"{reference.namespace}/{reference.name}", "items": items, **notes}, form)
        return 0
    from stowplan.cli.output import Page
    from stowplan.cli.tables import Table

    page, table = Page(), Table(["VERSION", "HASH", "IN FORCE SINCE", "WARNINGS", ""], right=frozenset({0, 3}))
    for each in items:
        table.add(each["version"], each["hash"], each["time"], len(each["warnings"]), "in the ConfigMap" if each["current"] else "")
    if not items:
        page.line(f"{reference} has no history: nobody has put a policy of it into force yet")
    else:
        page.table(table)
        if not any(each["current"] for each in items):
            page.line(f"what {reference} holds is none of them: it was refused, or is not in force yet", fg="yellow")
    for note in known.wrong:
        page.line(f"left out: {note}", fg="yellow")
    page.write()
    return 0


@command.command("rollback")
@_connection
@click.option(
    "--to", "wanted", default="", metavar="VERSION", help="A number, or how a hash begins. Left out: the next one further back."
)
def rollback(reference: Reference, kubeconfig: str | None, context: str | None, wanted: str) -> int:
    """Write a good version of a policy back into its ConfigMap, for the scheduler to pick up. Exits with 1 where there is none.

    Without --to that is the version in force before; said again, the one before that. Versions with the warning that they let no
    node pass are passed over.

    \b
      stowplan policy rollback
      stowplan policy rollback --to 7
      stowplan policy rollback --to 5a54a3
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    from stowplan.cli import restored
    from stowplan.cli.output import Page
    from stowplan.edge.policies.goingback import RollbackError

    async def back(history: History) -> Any:
        return await history.roll_back(wanted)

    try:
        found = _asked(reference, kubeconfig, context, back)
    except RollbackError as error:
        click.echo(f"Error: {error}", err=True)
        return 1
    page = Page()
    restored.show(page, reference, found)
    page.write()
    return 0
