"""Kept connections over real sockets, in real time: short waits only."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess

import pytest

from stowplan.edge import process
from stowplan.edge.kube import pool as pools
from stowplan.edge.kube.pool import pool_for
from stowplan.edge.kube.transport import Request, UnansweredError, UnsentError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HEADERS = {"Accept": "application/json"}
GET, POST = Request("GET", "/a", seconds=5.0), Request("POST", "/a", body=b"{}", seconds=5.0)


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """What a coroutine function returns, in either event loop."""
    factory = None
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
        factory = process.loop_factory()

    def run(test):
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(test())

    return run


@contextlib.asynccontextmanager
async def serving(talk, context=None, server_name="", *, trusting=None, path=""):
    """A pool for a server that has `talk(reader, writer, number)` with each connection."""
    talks, tasks = [], set()

    async def met(reader, writer):
        tasks.add(asyncio.current_task())
        talks.append(writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await talk(reader, writer, len(talks))
        finally:
            writer.close()

    server = await asyncio.start_server(met, "127.0.0.1", 0, ssl=context)
    scheme = "https" if trusting else "http"
    pool = pool_for(
        f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}{path}", trusting or ssl.create_default_context(), server_name
    )
    pool.talks = talks
    try:
        yield pool
    finally:
        pool.close()
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, *(writer.wait_closed() for writer in talks), return_exceptions=True)


async def heard(reader):
    """The head of one request, with its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
    return head + await reader.readexactly(length)


async def answering(reader, writer, _number):
    while True:
        await heard(reader)
        writer.write(OK)


async def settled():
    """Time for the other side to see what was done."""
    await asyncio.sleep(0.05)


async def asked(pool, request=POST):
    answer = await pool.request(request, HEADERS)
    return answer.status, answer.body


def test_a_connection_is_kept_and_used_by_one_request_at_a_time(run):
    async def test():
        async with serving(answering) as pool:
            assert [await asked(pool) for _ in range(3)] == [(200, b"ok")] * 3
            assert len(pool.talks) == 1
            assert await asyncio.gather(*(asked(pool) for _ in range(3))) == [(200, b"ok")] * 3
            assert len(pool.talks) == 3

    run(test)


def test_what_is_sent(run):
    async def test():
        found = []

        async def talk(reader, writer, _):
            found.append(await heard(reader))
            writer.write(OK)

        async with serving(talk, path="/prefix") as pool:
            await pool.request(Request("POST", "/a", {"x": "a b&c"}, b"{}"), HEADERS)
            port = pool._address[1]
        expected = f"POST /prefix/a?x=a+b%26c HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: application/json\r\nContent-Length: 2"
        assert found == [f"{expected}\r\n\r\n{{}}".encode()]

    run(test)


def test_a_connection_that_the_server_ended_is_not_used(run):
    async def once(reader, writer, _):
        await heard(reader)
        writer.write(OK)

    async def test():
        async with serving(once) as pool:
            for _ in range(2):
                assert await asked(pool) == (200, b"ok")
                await settled()
            assert len(pool.talks) == 2

    run(test)


@pytest.mark.parametrize("request_", [GET, POST])
def test_what_a_kept_connection_did_not_answer_is_sent_again_if_it_only_reads(run, request_):
    times = []

    async def once(reader, writer, number):
        await heard(reader)
        writer.write(OK)
        if number == 1:
            times.append(await heard(reader))  # and the server ends the connection at that moment

    async def test():
        async with serving(once) as pool:
            await asked(pool)
            if request_ is GET:
                assert await asked(pool, request_) == (200, b"ok")
            else:
                with pytest.raises(UnansweredError, match="broke"):
                    await asked(pool, request_)
            assert (len(times), len(pool.talks)) == (1, 2 if request_ is GET else 1)

    run(test)


@pytest.mark.parametrize("begun", [b"", b"HTTP/1.1 200 OK\r\nContent-", OK[:-1]])
def test_an_answer_that_breaks_off_is_none(run, begun):
    async def breaking(reader, writer, number):
        if number == 1 and begun:
            await heard(reader)
            writer.write(OK)
        await heard(reader)
        writer.write(begun)

    async def test():
        async with serving(breaking) as pool:
            if begun:
                await asked(pool, GET)
            with pytest.raises(UnansweredError, match="broke"):
                await asked(pool, GET)
            assert len(pool.talks) == 1

    run(test)


@pytest.mark.parametrize("how", ["late", "cancelled"])
def test_an_answer_that_nobody_waits_for_is_not_given_to_the_next_one(run, how):
    async def slow(reader, writer, number):
        while True:
            await heard(reader)
            await asyncio.sleep(0.3 if number == 1 else 0)
            writer.write(OK.replace(b"ok", b"%02d" % number))

    async def test():
        async with serving(slow) as pool:
            if how == "late":
                with pytest.raises(UnansweredError, match=r"no answer within 0\.1 seconds"):
                    await asked(pool, Request("POST", "/", body=b"{}", seconds=0.1))
            else:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await asked(pool)
            assert await asked(pool) == (200, b"02")
            await asyncio.sleep(0.4)
            assert await asked(pool) == (200, b"02")

    run(test)


def test_each_request_has_its_own_time(run):
    """A timer that an earlier request has left neither ends a later one nor lets it wait longer."""

    async def slow(reader, writer, _):
        for pause in (0.0, 0.3, 9.0):
            await heard(reader)
            await asyncio.sleep(pause)
            writer.write(OK)

    async def test():
        async with serving(slow) as pool:
            await asked(pool, Request("GET", "/", seconds=0.2))
            await asked(pool, Request("GET", "/", seconds=60.0))
            begun = asyncio.get_running_loop().time()
            with pytest.raises(UnansweredError):
                await asked(pool, Request("GET", "/", seconds=0.1))
            assert asyncio.get_running_loop().time() - begun < 2
            assert len(pool.talks) == 1

    run(test)


def test_a_server_may_end_a_connection_with_its_answer(run):
    async def closing(reader, writer, _):
        while True:
            await heard(reader)
            writer.write(OK.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))

    async def test():
        async with serving(closing) as pool:
            assert [await asked(pool) for _ in range(2)] == [(200, b"ok")] * 2
            assert len(pool.talks) == 2

    run(test)


def test_a_connection_that_was_long_idle_is_let_go(run, monkeypatch):
    async def test():
        async with serving(answering) as pool:
            await asked(pool)
            monkeypatch.setattr(pools, "KEEP_SECONDS", 0.0)
            await settled()
            await asked(pool)
            assert len(pool.talks) == 2

    run(test)


def test_who_gives_a_pool_up_lets_requests_end(run):
    async def slow(reader, writer, _):
        await heard(reader)
        await asyncio.sleep(0.1)
        writer.write(OK)
        assert not await reader.read()
        ended.append(True)

    ended = []

    async def test():
        async with serving(slow) as pool:
            asking = asyncio.ensure_future(asked(pool))
            await settled()
            pool.retire()
            assert await asking == (200, b"ok")
            await settled()
            assert ended

    run(test)


def test_who_reads_slowly_gets_all_of_a_stream(run):
    parts = [bytes([65 + number % 26]) * 300_000 for number in range(40)]

    async def streaming(reader, writer, _):
        await heard(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for part in parts:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def test():
        async with serving(streaming) as pool, pool.stream("/", {}, HEADERS, 5.0) as (head, pieces):
            assert head.status == 200
            await asyncio.sleep(0.2)
            assert b"".join([piece async for piece in pieces]) == b"".join(parts)

    run(test)


def test_credentials_and_paths_do_not_become_other_lines(run):
    async def test():
        async with serving(answering) as pool:
            with pytest.raises(UnsentError, match="credentials"):
                await pool.request(GET, {"Authorization": "Bearer a\r\nX: y"})
            await pool.request(GET, {"Authorization": "Bearer a\n"})  # a file's end
            for path in ("/a b", "/a\r\nX: y", "/\N{LATIN SMALL LETTER E WITH ACUTE}"):
                with pytest.raises(UnsentError, match="no path"):
                    await pool.request(Request("GET", path), HEADERS)

    run(test)


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A certificate that signs itself, for one name."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    kind = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    name = ["-subj", "/CN=server", "-addext", "subjectAltName=DNS:api.example"]
    command = ["openssl", "req", *kind, *name, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return str(certificate), str(key)


def contexts(certificate):
    """For a server with the certificate, and for a client that trusts it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    return server, ssl.create_default_context(cafile=certificate[0])


def test_requests_and_answers_of_any_size_over_tls(run, certificate):
    server, client = contexts(certificate)
    large = b"x" * 3_000_000

    async def echoing(reader, writer, _):
        while True:
            body = (await heard(reader)).partition(b"\r\n\r\n")[2]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()

    async def test():
        async with serving(echoing, server, "api.example", trusting=client) as pool:
            for body in (b"", b"short", large, b"short"):
                assert await asked(pool, Request("POST", "/", body=body)) == (200, body)
            assert len(pool.talks) == 1

    run(test)


def test_an_answer_without_a_length_ends_with_tls(run, certificate):
    server, client = contexts(certificate)

    async def ending(reader, writer, _):
        await heard(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhello")

    async def test():
        async with serving(ending, server, "api.example", trusting=client) as pool:
            assert [await asked(pool, GET) for _ in range(2)] == [(200, b"hello")] * 2

    run(test)


def test_the_certificate_must_be_for_the_server_and_trusted(run, certificate):
    server, client = contexts(certificate)

    async def test():
        for name, trusting in (("", client), ("other.example", client), ("api.example", ssl.create_default_context())):
            async with serving(answering, server, name, trusting=trusting) as pool:
                with pytest.raises(UnsentError, match="CERTIFICATE_VERIFY_FAILED"):
                    await asked(pool)

    run(test)


def test_a_server_that_speaks_no_tls_has_got_nothing(run, monkeypatch, certificate):
    monkeypatch.setattr(pools, "CONNECT_SECONDS", 0.2)

    async def silent(reader, _writer, _number):
        await reader.read()
        await asyncio.sleep(5)

    async def test():
        for talk, why in ((answering, "cannot connect"), (silent, "too long")):
            async with serving(talk, trusting=contexts(certificate)[1]) as pool:
                with pytest.raises(UnsentError, match=why):
                    await asked(pool)

    run(test)


@pytest.mark.parametrize("name", ["a..b", ".a", "x" * 64])
def test_a_name_that_no_certificate_can_have(run, name):
    async def test():
        pool = pool_for("https://127.0.0.1:1", ssl.create_default_context(), name)
        with pytest.raises(UnsentError):
            await pool.request(POST, HEADERS)

    run(test)


@pytest.mark.parametrize("host", ["a..b", "a" * 64])
def test_a_name_that_no_host_can_have(run, host):
    async def test():
        with pytest.raises(UnsentError):
            await pool_for(f"http://{host}:1", ssl.create_default_context()).request(POST, HEADERS)

    run(test)
