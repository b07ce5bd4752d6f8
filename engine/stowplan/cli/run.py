"""`stowplan run`: the scheduler itself, on a live cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from stowplan.edge.live import Options
    from stowplan.edge.policies.configmap import Reference
    from stowplan.edge.policies.following import Following
    from stowplan.policy.compile import Policy, PolicyError

PORT = 10259
FINDINGS = 20
"""Errors of a policy that are shown."""


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    """A Go duration such as `15s` or `1m30s`."""
    if value is None:
        return None
    from stowplan.profile.decode import parse_duration

    found = parse_duration(value)
    if found is None:
        raise click.BadParameter(f'{value} is no duration such as "15s"')
    if found < timedelta(0):
        raise click.BadParameter(f"{value} is negative")
    return found


def _name(_context: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """The name of an object."""
    if value:
        from stowplan.objects.qualified import subdomain_faults

        if faults := subdomain_faults(value):
            raise click.BadParameter(f"{value!r}: {faults[0]}")
    return value


def _reference(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Reference | None:
    """A ConfigMap, and the key in it."""
    if value is None:
        return None
    from stowplan.edge.policies.configmap import Reference

    found = Reference.parse(value)
    if found is None:
        raise click.BadParameter(f"{value} is not NAMESPACE/NAME or NAMESPACE/NAME/KEY")
    return found


def _election(name: str, says: str, field: str, *, time: bool = False) -> Callable[[Any], Any]:
    """An option that overrides a field of `leaderElection`, under kube-scheduler's name."""
    metavar, callback = ("DURATION", _seconds) if time else ("TEXT", _name)
    return click.option(f"--leader-elect-{name}", f"elect_{field}", metavar=metavar, callback=callback, help=says)


@click.command("run")
@click.option(
    "--policy",
    "--config",
    "policy",
    metavar="FILE",
    help="KubeSchedulerConfiguration or SchedulerPolicy, read again when it changes; left out: kube-scheduler's defaults.",
)
@click.option(
    "--policy-configmap",
    "configmap",
    metavar="NAMESPACE/NAME[/KEY]",
    callback=_reference,
    help="The ConfigMap that holds the policy, watched; the key may be left out where it is the only one, or policy.yaml.",
)
@click.option("--last-good", metavar="FILE", help="Where to keep the policy in force, for a start at which the newest one is bad.")
@click.option("--kubeconfig", metavar="FILE", help="How to reach the API server; goes before clientConnection.kubeconfig.")
@click.option("--context", metavar="NAME", help="The context of the kubeconfig.")
@click.option("--master", metavar="URL", help="The API server, in place of the kubeconfig's.")
@click.option(
    "--leader-elect",
    "elect_leader_elect",
    type=click.BOOL,
    is_flag=False,
    flag_value="true",
    metavar="[true|false]",
    help="Whether to schedule only while holding the lease.",
)
@_election("lease-duration", "How long the lease holds unless it is renewed.", "lease_duration", time=True)
@_election("renew-deadline", "How long a leader tries to renew it.", "renew_deadline", time=True)
@_election("retry-period", "How often it is tried.", "retry_period", time=True)
@_election("resource-name", "Name of the lease.", "resource_name")
@_election("resource-namespace", "Namespace of the lease.", "resource_namespace")
@click.option("--bind-address", default="0.0.0.0", show_default=True, help="Where health and metrics are served.")  # noqa: S104
@click.option("--port", type=click.IntRange(0, 65535), default=PORT, show_default=True, help="For health and metrics; 0: none.")
@click.option(
    "--stale-after",
    default="2m",
    show_default=True,
    metavar="DURATION",
    callback=_seconds,
    help="Not ready when nothing has been heard from the API server about some kind for so long.",
)
@click.option(
    "--shadow", is_flag=True, help="Write nothing: compare where another scheduler puts pods with what this one would do."
)
@click.option("--report", metavar="FILE", help="With --shadow: where the comparison is written at the end.")
@click.option("--decisions", metavar="FILE", help="Append a record of every decision, a JSON document a line.")
@click.option("--log-format", type=click.Choice(("text", "json")), default="text", show_default=True)
@click.option(
    "-v",
    "--v",
    "--verbosity",
    "verbosity",
    type=click.IntRange(0, 10),
    default=2,
    show_default=True,
    help="0: warnings and beginnings, 2: decisions, 3: every attempt, 5: watches and leases.",
)
@click.option("--seed", type=int, help="Makes the choice between equally good nodes repeatable.")
def command(policy: str | None, configmap: Reference | None, verbosity: int, log_format: str, **flags: Any) -> int:
    """Schedule the pods of a cluster whose schedulerName is that of a profile.

    A policy that changes is checked and put into force between two decisions; one that is wrong changes nothing, and the log,
    /configz, /metrics and an Event on the ConfigMap say why. Leader election and the connection need a restart.

    Replicas share a lease, kube-system/kube-scheduler unless the policy or a flag names another: beside a kube-scheduler that
    runs, give it a name of its own, and the profiles too. Ctrl-C, SIGTERM or SIGHUP finishes what is being bound; a second one does
    not.

    Files that are to be written are looked at before the start; later no file system holds up a decision, nor the stop for longer
    than some seconds, and the log says how many records are missing.

    Exits with 0 after a signal, with 1 when the lease is lost or the port is taken, with 3 when the policy or the kubeconfig is
    bad, no API server is known or a file cannot be written. A ConfigMap that is bad or not there is waited for.

    \b
      stowplan run --policy scheduler.yaml --kubeconfig ~/.kube/config --leader-elect=false
      stowplan run --policy-configmap stowplan-system/stowplan-policy
      stowplan run --shadow --report shadow.json
      curl localhost:10259/readyz?verbose
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # linear algebra threads are never used here
    if policy is not None and configmap is not None:
        raise click.UsageError("--policy and --policy-configmap exclude each other")
    if flags["report"] and not flags["shadow"]:
        raise click.UsageError("--report is for --shadow")
    from stowplan.edge.stopping import Stoppable, StoppedEarly

    with Stoppable():
        try:
            return _run(policy, configmap, verbosity, log_format, flags)
        except StoppedEarly:
            click.echo("stopped before anything was begun", err=True)
            return 0


def _run(policy: str | None, configmap: Reference | None, verbosity: int, log_format: str, flags: dict[str, Any]) -> int:
    """The exit code."""
    from stowplan.edge.logs import set_up

    _writable(flags)
    given = {name.removeprefix("elect_"): value for name, value in flags.items() if name.startswith("elect_")}
    overrides = {name: value for name, value in given.items() if value is not None}
    compiled = None if configmap is not None else _first(policy, overrides, flags["last_good"])
    set_up(log_format, verbosity)
    from stowplan.edge.live import run
    from stowplan.edge.policies.files import followable
    from stowplan.edge.policies.following import Following

    file = policy if policy is not None and followable(policy) else ""
    following = Following(file, configmap, flags["last_good"] or "", overrides) if file or configmap is not None else None
    return run(compiled, _options(policy or "", following, flags))


class OutputError(click.ClickException):
    """A file that is to be written cannot be."""

    exit_code = 3


class FindingsError(click.ClickException):
    """A policy with more errors than anybody reads."""

    exit_code = 3

    def show(self, file: Any = None) -> None:
        click.echo(self.message, file=file, err=True)


def _writable(flags: dict[str, Any]) -> None:
    """Look at the files that are going to be written. Raises OutputError and UsageError."""
    import os

    from stowplan.edge import outputs

    given = {name: flags[name] for name in ("report", "decisions", "last_good") if flags[name]}
    if len({os.path.realpath(path) for path in given.values()}) < len(given):
        raise click.UsageError(f"{' and '.join(map(_option, given))} need files of their own")
    for name, path in given.items():
        if name == "last_good" and os.path.isfile(path):  # noqa: PTH113 - a str
            continue  # good for a start, even where it cannot be written
        try:
            outputs.check(path, whole=name == "last_good")
        except OSError as error:
            raise OutputError(f"{_option(name)} {path} cannot be written: {error.strerror or error}") from None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _options(source: str, following: Following | None, flags: dict[str, Any]) -> Options:
    """What the command line says, as the scheduler takes it."""
    from stowplan.edge.live import Options

    return Options(
        source,
        flags["kubeconfig"],
        flags["context"],
        flags["master"],
        flags["bind_address"],
        flags["port"],
        flags["stale_after"].total_seconds(),
        flags["seed"],
        following,
        flags["shadow"],
        flags["report"] or "",
        flags["decisions"] or "",
    )


def _first(policy: str | None, overrides: dict[str, Any], last_good: str | None) -> Policy | None:
    """The policy to start with; None where it is bad and the last good one is to be taken. Raises PolicyError, UsageError."""
    from stowplan.edge.policies.starting import first_policy
    from stowplan.policy.compile import PolicyError

    try:
        return _overridden(first_policy(policy), overrides)
    except PolicyError as error:
        if last_good is None or policy is None:
            raise _shortened(error) from None
        return None


def _shortened(error: PolicyError) -> Exception:
    """The same with the first findings, errors before all else."""
    from stowplan.text import render_all

    if len(error.diagnostics) <= FINDINGS:
        return error
    found = sorted(error.diagnostics, key=lambda finding: not finding.is_error)
    more = f"and {len(found) - FINDINGS} more; `stowplan validate` shows them"
    return FindingsError(f"{render_all(found[:FINDINGS])}\n{more}")


def _overridden(policy: Policy, instead: dict[str, Any]) -> Policy:
    """The policy with what the command line says about leader election. Raises UsageError where that cannot be."""
    import dataclasses

    from stowplan.edge.election import elected

    configuration, wrong = elected(policy.configuration, instead)
    if wrong:
        raise click.UsageError("; ".join(wrong))
    return dataclasses.replace(policy, configuration=configuration)
