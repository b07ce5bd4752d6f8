"""A virtual event loop and a transport that answers from a script."""

import asyncio
import contextlib
import random
from collections import defaultdict, deque

import msgspec

from stowplan.edge.clock import Clock
from stowplan.edge.kube.calls import Caller
from stowplan.edge.kube.transport import Answer, UnansweredError
from stowplan.edge.observer import Observer
from stowplan.objects import read_as

START = 1_800_000_000.0


class VirtualLoop(asyncio.SelectorEventLoop):
    """Time passes only when everybody waits for it."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready:
            waiting = [handle.when() for handle in self._scheduled if not handle.cancelled()]
            assert waiting, "nobody waits for anything that will happen"
            self.now = max(self.now, min(waiting))
            assert self.now < 1e6, "this goes on for ever"
        super()._run_once()


def run(test):
    """What a coroutine function returns, in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(test())


def clock(seed=1):
    return Clock(lambda: START + asyncio.get_running_loop().time(), random.Random(seed))  # noqa: S311 - seeded on purpose


def encode(value):
    return msgspec.json.encode(value)


def answer(status=200, body=None, retry_after=None):
    return Answer(status, encode(body if body is not None else {}), retry_after)


def refusal(status, message="no", retry_after=None):
    return answer(status, {"kind": "Status", "code": status, "message": message}, retry_after)


def line(type_, item):
    return encode({"type": type_, "object": item})


class Script:
    """Answers by (method, path), in order, the last one for ever; an exception is raised, a function is called with the request.

    A stream is a list of lines, exceptions, and seconds to wait; when it is through, the server closes it.
    """

    def __init__(self):
        self.answers = defaultdict(deque)
        self.streams = deque()
        self.requests = []
        self.watched = []
        self.flying = self.most = 0

    def on(self, method, path, *answers):
        self.answers[method, path].extend(answers)
        return self

    async def request(self, request):
        self.requests.append(request)
        self.flying += 1
        self.most = max(self.most, self.flying)
        try:
            await asyncio.sleep(0.001)
            return await self._answer(request)
        finally:
            self.flying -= 1

    async def _answer(self, request):
        prepared = self.answers[request.method, request.path]
        assert prepared, f"nobody expected {request.method} {request.path}"
        found = prepared.popleft() if len(prepared) > 1 else prepared[0]
        if callable(found):
            found = found(request)
            if asyncio.iscoroutine(found):
                found = await found
        if isinstance(found, Exception):
            raise found
        return found

    @contextlib.asynccontextmanager
    async def stream(self, path, query, *, silence):
        self.watched.append((path, dict(query), asyncio.get_running_loop().time()))
        head, lines = self.streams.popleft() if self.streams else (answer(), [1e9])
        if isinstance(head, Exception):
            raise head

        async def following():
            for each in lines:
                if isinstance(each, float | int):
                    await asyncio.sleep(min(each, silence))
                    if each >= silence:
                        raise UnansweredError("silence")
                elif isinstance(each, Exception):
                    raise each
                else:
                    yield each

        yield head, following()

    def sent(self, method=None, *, past=""):
        """Bodies of the requests of a method whose path ends like this."""
        return [
            msgspec.json.decode(each.body)
            for each in self.requests
            if (method is None or each.method == method) and each.path.endswith(past) and each.body
        ]


class Notebook(Observer):
    """Remembers what it was told."""

    def __init__(self):
        self.failures, self.watches, self.notes, self.leads, self.handlings = [], [], [], [], []

    def failed(self, where, message):
        self.failures.append((where, message))

    def watched(self, kind, what):  # noqa: ARG002
        self.watches.append(what)

    def noted(self, outcome):
        self.notes.append(outcome)

    def lease(self, leads):
        self.leads.append((leads, asyncio.get_running_loop().time()))

    def handled(self, event, effects, now, seconds):  # noqa: ARG002
        self.handlings.append(event)


def caller(script, *, may_write=lambda: True, width=64, observer=None):
    return Caller(script, clock(), observer or Notebook(), may_write, asyncio.Semaphore(width))


def pod_object(name="a", uid="u1", version="5", node="", **members):
    spec = {"containers": [{"name": "c", "image": "i"}], "priority": 0, **({"nodeName": node} if node else {})}
    spec |= members.pop("spec", {})
    metadata = {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, **members.pop("metadata", {})}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, **members}


def pod(*args, **kwargs):
    return read_as("Pod", encode(pod_object(*args, **kwargs))).fact


def listed(version, *items, more=""):
    return answer(200, {"kind": "List", "metadata": {"resourceVersion": version, "continue": more}, "items": list(items)})
