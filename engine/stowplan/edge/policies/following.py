"""Which policy to follow, and the wait for the first one that is good."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stowplan.edge.clock import Clock
from stowplan.edge.kube.transport import Transport
from stowplan.edge.logs import ROOT, level, say
from stowplan.edge.metrics import Metrics
from stowplan.edge.observer import Observer
from stowplan.edge.policies.configmap import PolicyConfigMap, Reference
from stowplan.edge.policies.examine import Examiner
from stowplan.edge.policies.files import PolicyFile
from stowplan.edge.policies.keeper import Keeper, described
from stowplan.edge.policies.lastgood import LastGood
from stowplan.edge.policies.telling import PolicyGauges, PolicyLog
from stowplan.edge.process import listen, signals
from stowplan.edge.serve import Asked, Check, Health, Page, Reply, Server, as_json
from stowplan.edge.serve.configz import bounded
from stowplan.edge.serve.health import PING
from stowplan.edge.serve.policy import HEAD
from stowplan.policy.compile import PolicyError

PATIENCE = 5.0
"""Seconds in which the API server may say what the policy is, before the last good one is taken."""
BRIEFLY = 2.0
"""Seconds without a policy after which health is served."""
WAITING = 503
_log = logging.getLogger(f"{ROOT}.policy")


@dataclass(frozen=True, slots=True)
class Following:
    """Where the policy stands: a file or a ConfigMap.

    last_good   a file for the last good policy, "" for none
    instead     what the command line says about leader election
    """

    file: str = ""
    configmap: Reference | None = None
    last_good: str = ""
    instead: Mapping[str, Any] = field(default_factory=dict)

    def keeper(self, clock: Clock) -> Keeper:
        """A keeper that logs what becomes of texts, and keeps the last good one."""
        keeper = Keeper(Examiner(self.instead), clock.wall, [PolicyLog()])
        if self.last_good:
            keeper.listeners.append(LastGood(self.last_good))
        return keeper

    async def follow(self, keeper: Keeper, transport: Transport, clock: Clock, observer: Observer) -> None:
        """Offer every new text, until cancelled."""
        if self.configmap is not None:
            await PolicyConfigMap(self.configmap, keeper, transport, clock, observer).run()
        elif self.file:
            await PolicyFile(self.file, keeper).run()
        else:
            await asyncio.Event().wait()


class Relay(Observer):
    """Hands on what it is told about the ConfigMap; until there is somebody to hand it to, failures are logged."""

    def __init__(self) -> None:
        self.target: Observer | None = None
        self._last = ""

    def watched(self, kind: str, what: str) -> None:
        if self.target is not None:
            self.target.watched(kind, what)

    def failed(self, where: str, message: str) -> None:
        if self.target is not None:
            self.target.failed(where, message)
        elif message != self._last:
            self._last = message
            say(_log, logging.WARNING, "trouble", where=where, message=message)


async def await_first(keeper: Keeper, following: Following, address: str, port: int) -> bool:
    """Wait for a policy, and serve health meanwhile: alive, not ready, and why. False where a signal came first.

    A last good policy is taken where the text to follow is bad, not there, or nobody says which. Raises PortError.
    """
    stopped = asyncio.Event()
    with signals(lambda _: stopped.set()):
        if following.last_good:
            await _either(keeper.heard.wait(), stopped.wait(), seconds=PATIENCE)
            if keeper.in_force is None and not stopped.is_set():
                _fall_back(keeper, LastGood(following.last_good))
        if keeper.in_force is None:
            await _either(keeper.first.wait(), stopped.wait(), seconds=BRIEFLY)
        if keeper.in_force is None and not stopped.is_set():
            say(_log, logging.WARNING, "waiting for a policy", reason=keeper.note())
            server = _lobby(keeper)
            try:
                await listen(server, address, port)
                await _either(keeper.first.wait(), stopped.wait())
            finally:
                await server.close()
    return not stopped.is_set()


def _fall_back(keeper: Keeper, kept: LastGood) -> None:
    """Start with what was in force last, if that can still be read."""
    offer = kept.read()
    if offer is None:
        return
    try:
        checked = keeper.examiner.examine(offer, None)
    except PolicyError as error:
        say(_log, logging.WARNING, "the last good policy cannot be read", reason=str(error).partition("\n")[0])
        return
    say(_log, level(0), "starting with the last good policy", file=kept.path, hash=checked.digest)
    keeper.start(offer, checked)


def _lobby(keeper: Keeper) -> Server:
    """What can be asked of a scheduler that has no policy yet."""
    ready = Health("/readyz", (Check("policy", keeper.missing),))
    healths = (Health("/livez", (PING,)), ready, Health("/healthz", (PING,)))
    metrics = Metrics()
    metrics.registry.register(PolicyGauges(keeper))

    def none() -> dict[str, Any]:
        return {"generation": None, "hash": None, "waits": keeper.waits_for(), **bounded(described(keeper))}

    def configz(_: Asked) -> Reply:
        return as_json({"componentconfig": None, "policy": none()})

    def policy(_: Asked) -> Reply:
        return as_json(HEAD | none())

    def later(_: Asked) -> Reply:
        return Reply(f"waits for a policy: {keeper.waits_for()}\n".encode(), status=WAITING)

    pages = [Page(path, later) for path in ("/queue", "/decisions", "/decisions/{namespace}/{pod}", "/shadow")]
    return Server(healths, (metrics.page(), Page("/configz", configz), Page("/policy", policy), *pages))


async def _either(*works: Awaitable[Any], seconds: float | None = None) -> None:
    """Until one of them is done, or the time is over."""
    tasks = [asyncio.ensure_future(work) for work in works]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
