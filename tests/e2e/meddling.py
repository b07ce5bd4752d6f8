"""`stowplan run` whose first Binding meets with an accident; all else is the real program on the real API server.

    python meddling.py HOW FOLDER run FLAG...

HOW is `held` (the file FOLDER/asked says that it is about to be sent, and it is sent once FOLDER/go exists), `unanswered` (it takes
effect, but no answer comes), `elsewhere` (as if somebody else had bound the pod to the node named in FOLDER/node just before).
"""

import asyncio
import contextlib
import dataclasses
import sys
from pathlib import Path

import msgspec

from stowplan.cli.main import main
from stowplan.edge import live
from stowplan.edge.kube.transport import UnansweredError

HOW, FOLDER = sys.argv[1], Path(sys.argv[2])


class Meddling:
    """A transport around the real one."""

    def __init__(self, transport):
        self.transport, self.done = transport, False
        self.stream = transport.stream

    async def request(self, request):
        if self.done or not request.path.endswith("/binding"):
            return await self.transport.request(request)
        self.done = True
        return await getattr(self, HOW)(request)

    async def held(self, request):
        (FOLDER / "asked").touch()
        while not (FOLDER / "go").exists():  # noqa: ASYNC110 -- another process makes it
            await asyncio.sleep(0.01)
        return await self.transport.request(request)

    async def unanswered(self, request):
        await self.transport.request(request)
        raise UnansweredError("the connection broke")

    async def elsewhere(self, request):
        body = msgspec.json.decode(request.body)
        body["target"]["name"] = (FOLDER / "node").read_text()
        await self.transport.request(dataclasses.replace(request, body=msgspec.json.encode(body)))
        return await self.transport.request(request)


@contextlib.asynccontextmanager
async def meddled(policy, options):
    async with connected(policy, options) as reach:
        yield dataclasses.replace(reach, transport=Meddling(reach.transport))


connected, live._connected = live._connected, meddled
sys.argv = ["stowplan", *sys.argv[3:]]
sys.exit(main())
