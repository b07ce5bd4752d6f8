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
    from stowplan.policy.compile import Policy

PORT = 10259


def _seconds(_context: click.Context, _parameter: click.Parameter, value: str | None) -> timedelta | None:
    """A Go duration such as `15s` or `1m30s`."""
    if value is None:
        return None
    from stowplan.profile.decode import parse_duration

    found = parse_duration(value)
    if found is None:
        raise click.BadParameter(f'{value} is no duration such as "15s"')
    return found


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
    metavar, callback = ("DURATION", _seconds) if time else ("TEXT", None)
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
    runs, give it a name of its own, and the profiles too. Ctrl-C or SIGTERM finishes what is being bound; a second one does not.

    Exits with 0 after a signal, with 1 when the lease is lost, the port is taken or no API server is known. A ConfigMap that is
    bad or not there is waited for.

    \b
      stowplan run --policy scheduler.yaml --kubeconfig ~/.kube/config --leader-elect=false
      stowplan run --policy-configmap stowplan-system/stowplan-policy
      stowplan run --shadow --report shadow.json
      curl localhost:10259/readyz?verbose
    """  # noqa: D301 - click's mark for a paragraph that keeps its lines
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # linear algebra threads are never used here
    from stowplan.edge.logs import set_up

    if policy is not None and configmap is not None:
        raise click.UsageError("--policy and --policy-configmap exclude each other")
    if flags["report"] and not flags["shadow"]:
        raise click.UsageError("--report is for --shadow")
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
    from stowplan.edge.load import load_policy
    from stowplan.policy.compile import PolicyError

    try:
        return _overridden(load_policy(policy), overrides)
    except PolicyError:
        if last_good is None or policy is None:
            raise
        return None


def _overridden(policy: Policy, instead: dict[str, Any]) -> Policy:
    """The policy with what the command line says about leader election. Raises UsageError where that cannot be."""
    import dataclasses

    from stowplan.edge.election import elected

    configuration, wrong = elected(policy.configuration, instead)
    if wrong:
        raise click.UsageError("; ".join(wrong))
    return dataclasses.replace(policy, configuration=configuration)
