"""`stowplan run`, put together: a policy, a loop, a connection to the API server, and everything that tells of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

from stowplan import __version__
from stowplan.edge import outputs
from stowplan.edge.clock import Clock, real
from stowplan.edge.counted import Counted
from stowplan.edge.diary import Diary
from stowplan.edge.drive import Drive, LeaseLostError, Settings
from stowplan.edge.kube.aio import connected
from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.extender import Web
from stowplan.edge.kube.lease import Seat
from stowplan.edge.kube.limit import limit_of
from stowplan.edge.kube.readonly import ReadOnly
from stowplan.edge.kube.transport import Transport
from stowplan.edge.kube.web import AioWeb
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError
from stowplan.edge.logs import ROOT, level, say
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.examine import Checked, Offer
from stowplan.edge.policies.following import Following, Relay, await_first
from stowplan.edge.policies.keeper import Keeper, Live, described, headline
from stowplan.edge.policies.telling import MOST, ComparisonGauges, PolicyGauges, disagreed
from stowplan.edge.process import PortError, Process, Telling, alongside, loop_factory
from stowplan.edge.rollouts import RolloutGauges
from stowplan.edge.serve import Check, Page
from stowplan.edge.serve.checks import Limits
from stowplan.edge.serve.configz import InForce, configz, policy_hash
from stowplan.edge.serve.decisions import Told, decisions
from stowplan.edge.serve.policy import policy as policy_page
from stowplan.edge.serve.queue import queue
from stowplan.edge.serve.shadow import shadow
from stowplan.edge.serve.standing import Standing
from stowplan.edge.tracing import Traces, tracing
from stowplan.loop.ledger import Ledger
from stowplan.loop.loop import Loop
from stowplan.loop.rollout import rollout_json
from stowplan.plugins.arguments import DynamicResourcesArgs
from stowplan.policy.compile import Policy
from stowplan.profile import Configuration
from stowplan.text import Code, Severity, Source

FAILED = 1
"""The exit code of a scheduler that had to stop: its lease is lost, its port is taken."""
UNREADABLE = 3
"""The exit code where no API server is known, or not who we are there."""
_log = logging.getLogger(f"{ROOT}.process")


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says. `source`: the policy's file; `port` 0: nothing is served; `stale_after`: seconds.

    following   where new policies come from; None: there will be none
    shadow      decide nothing and write nothing, but compare; `report`: a file for the comparison, written at the end
    decisions   a file that decision records are appended to
    """

    source: str = ""
    kubeconfig: str | None = None
    context: str | None = None
    master: str | None = None
    address: str = ""
    port: int = 0
    stale_after: float = 120.0
    seed: int | None = None
    following: Following | None = None
    shadow: bool = False
    report: str = ""
    decisions: str = ""


@dataclass(frozen=True, slots=True)
class Reach:
    """The connections of a scheduler: to the API server and to extenders."""

    transport: Transport
    web: Web | None = None


class StoppedError(Exception):
    """The lease is lost. `lease`: its namespace and name."""

    def __init__(self, text: str, lease: str | None) -> None:
        super().__init__(text)
        self.lease = lease


Connect = Callable[[Policy | None, Options], AbstractAsyncContextManager[Reach]]


def run(policy: Policy | None, options: Options, connect: Connect | None = None) -> int:
    """Schedule until a signal comes; the exit code. Without a policy the first good one that is followed is waited for.

    Raises whatever is a bug.
    """
    _introduce(policy, options)
    traces = tracing()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_run(policy, options, _connected if connect is None else connect, traces))
    except (StoppedError, PortError, WhereaboutsError) as error:
        say(_log, logging.ERROR, f"stopped: {error}", lease=getattr(error, "lease", None))
        return UNREADABLE if isinstance(error, WhereaboutsError) else FAILED
    finally:
        if traces is not None:
            traces.close()
    say(_log, level(0), "stopped")
    return 0


async def _run(policy: Policy | None, options: Options, connect: Connect, traces: Traces | None) -> None:
    clock, following = real(), options.following or Following()
    keeper = following.keeper(clock)
    if policy is not None:
        keeper.start(Offer(_source(policy, options)), Checked(policy, policy_hash(policy)))
    async with connect(policy, options) as found:
        reach, relay = Reach(ReadOnly(found.transport), found.web) if options.shadow else found, Relay()
        parts = _Parts(keeper, following, options, reach, clock)
        await alongside(_schedule(parts, relay, traces), following.follow(keeper, reach.transport, clock, relay))


@dataclass(frozen=True, slots=True)
class _Parts:
    """What a scheduler is made of before there is a policy."""

    keeper: Keeper
    following: Following
    options: Options
    reach: Reach
    clock: Clock


async def _schedule(parts: _Parts, relay: Relay, traces: Traces | None) -> None:
    """Wait for a policy, then run under it and its successors."""
    options, keeper = parts.options, parts.keeper
    if keeper.in_force is None and not await await_first(keeper, parts.following, options.address, options.port):
        return
    now = keeper.in_force
    assert now is not None
    policy, configuration = now.policy, now.policy.configuration
    loop = Loop(policy, random.Random(options.seed).randrange, shadow=options.shadow)  # noqa: S311 - a choice between equals
    loop.ledger.generation, loop.ledger.digest = now.generation, now.digest
    if loop.ledger.shadow is not None:
        loop.ledger.shadow.told = disagreed
    telling = Telling(loop.ledger, configuration, parts.clock, traces)
    relay.target = telling.reporter
    transport = Counted(parts.reach.transport, telling.metrics)
    settings = _settings(loop.ledger.policy, parts.reach, alone=options.shadow)
    drive = Drive(loop, transport, parts.clock, settings, telling.reporter)
    keeper.live = Live(loop.ledger.store, drive.tell)
    process = Process(drive, telling.reporter, parts.clock)
    for collector in (PolicyGauges(keeper), ComparisonGauges(loop.ledger), RolloutGauges(loop.ledger)):
        telling.metrics.registry.register(collector)
    checks = (Check("policy", keeper.missing, keeper.note),) if options.following is not None else ()
    limits = _limits(configuration, options)
    server = process.server(limits, (telling.metrics.page(), *_pages(loop.ledger, keeper, drive)), checks)
    diary = Diary(options.decisions, loop.ledger.records) if options.decisions else None
    clerk = _clerk(parts, drive, Caller(transport, parts.clock, telling.reporter, drive.may_write, asyncio.Semaphore(1)))
    try:
        others = [each.run() for each in (diary, clerk) if each is not None]
        others.append(_looked_at(keeper, drive))
        await alongside(process.run(server, options.address, options.port), *others)
    except LeaseLostError as error:
        raise StoppedError(str(error), lease_of(configuration)) from error
    finally:
        if diary is not None:
            diary.close()
        _report(loop.ledger, options)


async def _looked_at(keeper: Keeper, drive: Drive) -> None:
    """Try the policy of this start on the cluster, once that is known."""
    await keeper.try_start(lambda: drive.synced)
    await asyncio.Event().wait()  # what runs alongside ends with the process


def _clerk(parts: _Parts, drive: Drive, caller: Caller) -> Clerk | None:
    """Whoever writes about policies, where there is a ConfigMap to write about."""
    if parts.following.configmap is None or parts.options.shadow:
        return None
    clerk = Clerk(parts.keeper, parts.following.configmap, caller, drive.settings.instance)
    parts.keeper.listeners.append(clerk)
    return clerk


def _pages(ledger: Ledger, keeper: Keeper, drive: Drive) -> tuple[Page, ...]:
    """What can be asked about decisions, pods that wait, and the policy."""

    def in_force() -> InForce:
        source = "" if keeper.in_force is None else keeper.in_force.offer.source.name
        return InForce(ledger.policy, ledger.generation, source, described(keeper))

    def stand() -> Standing:
        return Standing(drive.leading, "" if drive.lease is None else drive.lease.holder)

    told = configz(in_force), policy_page(in_force, lambda: rollout_json(ledger), stand)
    recent = decisions(Told(lambda: ledger.records, stand, lambda: keeper.numbers))
    return (*told, *recent, queue(lambda: ledger, stand), shadow(lambda: ledger.shadow))


def _report(ledger: Ledger, options: Options) -> None:
    """Write down how another scheduler's placements compare."""
    if not options.report or ledger.shadow is None:
        return
    text = msgspec.json.format(msgspec.json.encode(ledger.shadow.to_json()), indent=2) + b"\n"
    try:
        outputs.write(options.report, text)
    except OSError as error:
        say(_log, logging.ERROR, "the report cannot be written", file=options.report, message=error.strerror or str(error))


@contextlib.asynccontextmanager
async def _connected(policy: Policy | None, options: Options) -> AsyncIterator[Reach]:
    """The API server that the command line names, else the configuration, else the surroundings."""
    kubeconfig = options.kubeconfig or ("" if policy is None else policy.configuration.client_connection.kubeconfig)
    async with connected(Whereabouts(kubeconfig, options.context, options.master or "")) as transport, AioWeb() as web:
        say(_log, level(0), "connecting", server=transport.host)
        yield Reach(transport, web)


def _settings(policy: Policy, reach: Reach, *, alone: bool) -> Settings:
    """`alone`: there is nothing to compete for."""
    configuration = policy.configuration
    election = configuration.leader_election
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    seat = Seat(election, identity) if election.leader_elect and not alone else None
    late, limit = configuration.delay_cache_until_active, limit_of(configuration)
    first = next(iter(policy.profiles.values()))
    devices = first.args.get("DynamicResources")
    patience = devices.binding_timeout.total_seconds() if isinstance(devices, DynamicResourcesArgs) else 600.0
    return Settings(seat, identity, first.scheduler_name, limit=limit, late=late, patience=patience, web=reach.web)


def _limits(configuration: Configuration, options: Options) -> Limits:
    election = configuration.leader_election
    elected = election.leader_elect and not options.shadow
    return Limits(options.stale_after, (election.resource_name, election.lease_duration.total_seconds()) if elected else None)


def _source(policy: Policy, options: Options) -> Source:
    """The text that the policy was read from; an empty one for a document that was none."""
    origin = policy.configuration.origin
    span = None if origin is None else origin.tree.span
    return Source(options.source, "" if span is None else span.source.text)


def _introduce(policy: Policy | None, options: Options) -> None:
    """Say what is about to run, and what is strange about its policy."""
    following = options.following
    said: dict[str, Any] = {"version": __version__, "policy": options.source or "default"}
    if policy is not None:
        said |= {"profiles": list(policy.profiles), "lease": None if options.shadow else lease_of(policy.configuration)}
    if following is not None and following.configmap is not None:
        said["policy"] = str(following.configmap)
    say(_log, level(0), "starting", **said, shadow=options.shadow or None)
    found = () if policy is None else policy.warnings
    told = [each for each in found if each.severity is Severity.WARNING and each.code is not Code.EXTENDER]  # which are asked here
    for finding in told[:MOST]:
        say(_log, logging.WARNING, headline(finding))
    if len(told) > MOST:
        say(_log, logging.WARNING, f"and {len(told) - MOST} more warnings; `stowplan validate` shows them")


def lease_of(configuration: Configuration) -> str | None:
    """Namespace and name of the lease; None where there is no election."""
    election = configuration.leader_election
    return f"{election.resource_namespace}/{election.resource_name}" if election.leader_elect else None
