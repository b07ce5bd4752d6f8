"""Clients that are slow, many, or talk nonsense: others are answered all the same, and the log stays short."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import resource

import pytest

from stowplan.edge.process import loop_factory
from stowplan.edge.serve import Check, Health, Page, Reply, Server
from stowplan.edge.serve.door import Door, Limits

HEALTH = Health("/livez", (Check("ping", lambda: ""),))
LARGE = Page("/large", lambda _: Reply(b"x" * 50_000_000), private=False)
PROBE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
SHORT = Limits(most=8, asking=0.5, whole=1.5)
_writers = []


def visit(talk, limits=SHORT):
    """What `talk` returns, which is given a server."""

    async def main():
        server = Server([HEALTH], [LARGE], limits)
        await server.start("127.0.0.1", 0)
        try:
            async with asyncio.timeout(20):
                return await talk(server)
        finally:
            while _writers:
                writer = _writers.pop()
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
            await server.close()

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main())


async def come(server, *, said=b""):
    """A connection that takes no more than is asked of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1000)
    _writers.append(writer)
    writer.write(said)
    return reader, writer


async def probe(server):
    """The answer to a probe, within a second as kubelets want it."""
    reader, _ = await come(server, said=PROBE)
    async with asyncio.timeout(1):
        return await reader.read()


async def gone(reader):
    """How long until the server ends a connection without an answer."""
    began = asyncio.get_running_loop().time()
    with contextlib.suppress(ConnectionError):
        assert await reader.read() == b""
    return asyncio.get_running_loop().time() - began


@pytest.mark.parametrize("said", [b"", b"G", b"GET /livez HTTP/1.1\r\n", b"GET /livez HTTP/1.1\r\nHost: loc"])
def test_who_does_not_ask_is_put_out(said):
    async def talk(server):
        reader, _ = await come(server, said=said)
        return await gone(reader)

    assert 0.4 < visit(talk) < 2.5


def test_a_drop_now_and_then_does_not_help():
    async def talk(server):
        reader, writer = await come(server, said=b"GET /livez HTTP/1.1\r\n")

        async def drip():
            for number in range(1000):
                writer.write(f"X-{number}: a\r\n".encode())
                await asyncio.sleep(0.05)

        dripping = asyncio.create_task(drip())
        try:
            return await gone(reader)
        finally:
            dripping.cancel()

    assert visit(talk) < 2.5


def test_who_does_not_take_the_answer_is_put_out():
    async def talk(server):
        reader, _ = await come(server, said=b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(3.5)
        taken = 0
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while piece := await reader.read(1_000_000):
                taken += len(piece)
        return taken

    assert visit(talk) < 50_000_000


def test_a_body_that_does_not_come_is_not_waited_for():
    async def talk(server):
        reader, _ = await come(server, said=b"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n")
        async with asyncio.timeout(1):
            return await reader.read()

    assert visit(talk).startswith(b"HTTP/1.1 200 OK")


def test_a_connection_is_for_one_request():
    async def talk(server):
        reader, _ = await come(server, said=PROBE * 3)
        async with asyncio.timeout(1):
            return await reader.read()

    answer = visit(talk)
    assert (answer.count(b"HTTP/1.1 200 OK"), b"Connection: close" in answer) == (1, True)


def test_probes_get_through_a_crowd(caplog):
    async def talk(server):
        crowd = [await come(server, said=b"GET /") for _ in range(50)]
        answers = [await probe(server) for _ in range(20)]
        more = [await come(server, said=b"GET /") for _ in range(50)]
        answers.append(await probe(server))
        await asyncio.sleep(0.1)
        return answers, len(server._door._guests), len(crowd) + len(more)

    answers, inside, _ = visit(talk, Limits(most=8, asking=20))
    assert all(answer.startswith(b"HTTP/1.1 200 OK") for answer in answers)
    assert inside <= 8
    assert [record.getMessage() for record in caplog.records] == ["too many connections: the oldest are closed"]


def test_who_has_asked_is_not_put_out_for_who_has_not():
    async def talk(server):
        reader, _ = await come(server, said=b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asyncio.sleep(0.2)
        crowd = [await come(server, said=b"GET /") for _ in range(50)]
        taken = 0
        while piece := await reader.read(1_000_000):
            taken += len(piece)
        return taken, crowd

    assert visit(talk, Limits(most=8))[0] > 50_000_000


def test_no_file_descriptors_are_one_line_in_the_log(caplog, monkeypatch):
    """The oldest makes room, and once there is some, who asks is answered."""

    async def talk(server):
        loop = asyncio.get_running_loop()
        idle, _ = await come(server)
        await probe(server)
        accept, failing = loop.sock_accept, 5

        async def exhausted(listener):
            nonlocal failing
            if not failing:
                return await accept(listener)
            failing -= 1
            raise OSError(errno.EMFILE, "Too many open files")

        monkeypatch.setattr(loop, "sock_accept", exhausted)
        answers = [await probe(server) for _ in range(3)]
        return answers, await gone(idle)

    answers, left = visit(talk, Limits(asking=20))
    assert all(answer.startswith(b"HTTP/1.1 200 OK") for answer in answers)
    assert left < 5
    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == ("a connection cannot be accepted", logging.WARNING)
    assert record.stowplan_values["message"] == "Too many open files"


def test_connections_are_a_share_of_the_file_descriptors(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert Door(None, None).limits.most == 16
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert Door(None, None).limits.most == 128


@pytest.mark.parametrize(
    "said",
    [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nX-Large: " + b"a" * 100_000 + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n" + b"".join(b"X-%d: a\r\n" % number for number in range(1000)) + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200),
        b"nonsense\r\n\r\n",
    ],
    ids=["url", "header", "headers", "tls", "nonsense"],
)
def test_what_is_too_large_or_no_request_is_refused(said, caplog):
    async def talk(server):
        reader, _ = await come(server, said=said)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1000):
                answer += piece
        return answer

    answer = visit(talk)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.0 400 "))
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]
