from __future__ import annotations

import asyncio
import errno
import json
import socket

import aiohttp
import pytest
from yarl import URL

from stowplan.edge.metrics import Metrics
from stowplan.edge.serve import Asked, Check, Health, Page, Reply, Server, as_json
from stowplan.edge.serve.decisions import Told, decisions
from stowplan.edge.serve.queue import queue
from stowplan.edge.serve.shadow import shadow
from unit.loop.driving import Scene

HEALTH = Health("/readyz", (Check("ping", lambda: ""), Check("sync", lambda: "lists are missing")))
OPEN = Page("/metrics", lambda asked: Reply(asked.accept.encode(), "text/plain; version=0.0.4"), private=False)
SECRET = Page("/decisions/{namespace}/{pod}", lambda asked: as_json(dict(asked.parts)))


def ask(path, method="GET", address="127.0.0.1", **headers):
    """Status, headers and text of one request; `address` is where the server listens and is asked."""

    async def talk():
        server = Server([HEALTH], [OPEN, SECRET])
        await server.start(address, 0)
        try:
            async with aiohttp.ClientSession() as session:
                url = f"http://{peer(address)}:{server.port}{path}"
                async with session.request(method, url, headers=headers) as answer:
                    return answer.status, answer.headers, await answer.text()
        finally:
            await server.close()

    return asyncio.run(talk())


def peer(address):
    return address or "127.0.0.1"


def other_address():
    """An address of this host that is not its loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_health_with_reasons_for_this_host():
    status, headers, text = ask("/readyz?verbose")
    assert status == 500
    assert text == "[+]ping ok\n[-]sync failed: lists are missing\nreadyz check failed\n"
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_exclusions_and_single_checks():
    assert ask("/readyz?exclude=sync")[::2] == (200, "ok")
    assert (
        ask("/readyz?exclude=ping&exclude=sync&verbose")[2] == "[+]ping excluded: ok\n[+]sync excluded: ok\nreadyz check passed\n"
    )
    assert ask("/readyz/ping")[::2] == (200, "ok")
    assert ask("/readyz/nonsense")[0] == 404


def test_pages_get_the_parts_of_their_path_and_the_format_asked_for():
    assert ask("/decisions/web/api-7d9")[2] == '{\n  "namespace": "web",\n  "pod": "api-7d9"\n}\n'
    assert ask("/metrics", Accept="application/openmetrics-text")[2] == "application/openmetrics-text"
    assert ask("/metrics")[1]["Content-Type"] == "text/plain; version=0.0.4"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_nothing_can_be_changed(method):
    assert ask("/metrics", method)[0] == 405


def test_unknown_paths():
    assert ask("/debug/pprof")[0] == 404


@pytest.mark.parametrize("host", ["evil.example", "evil.example:10259", "localhost.evil.example", "169.254.1.1"])
def test_private_pages_are_not_for_web_pages_that_point_here(host):
    assert ask("/decisions/web/api", Host=host)[0] == 403
    assert ask("/metrics", Host=host)[0] == 200


@pytest.mark.parametrize("host", ["localhost:10259", "LOCALHOST", "127.0.0.1", "[::1]:10259", "[::1]"])
def test_names_of_this_host(host):
    assert ask("/decisions/web/api", Host=host)[0] == 200


def test_all_addresses_are_served_and_mapped_ones_are_this_host():
    assert ask("/decisions/web/api", address="")[0] == 200


@pytest.mark.skipif(other_address() in (None, "127.0.0.1"), reason="this host has no address but its loopback")
def test_private_pages_are_for_this_host_alone():
    address = other_address()
    status, _, text = ask("/decisions/web/api", address=address, Host="localhost")
    assert status == 403
    assert "kubectl port-forward" in text
    assert ask("/readyz", address=address)[2] == "[+]ping ok\n[-]sync failed: reason withheld\nreadyz check failed\n"
    assert ask("/metrics", address=address)[0] == 200


def test_a_taken_port_is_an_error():
    async def twice():
        first, second = Server([HEALTH], []), Server([HEALTH], [])
        await first.start("127.0.0.1", 0)
        try:
            await second.start("127.0.0.1", first.port)
        finally:
            await first.close()

    with pytest.raises(OSError, match="rrno") as raised:
        asyncio.run(twice())
    assert raised.value.errno == errno.EADDRINUSE


def test_closing_is_for_good_and_may_be_repeated():
    async def close():
        server = Server([HEALTH], [])
        await server.start("127.0.0.1", 0)
        await server.close()
        await server.close()
        with pytest.raises(OSError, match="rrno") as raised:
            await asyncio.open_connection("127.0.0.1", server.port)
        return raised.value.errno

    assert asyncio.run(close()) == errno.ECONNREFUSED


def told(*paths):
    """Status and text of pages of a scheduler that has not done anything, one server for all."""
    ledger = Scene().loop.ledger
    pages = (*decisions(Told(lambda: ledger.records)), queue(lambda: ledger), shadow(lambda: None))

    async def talk():
        server = Server([HEALTH], [*pages, Metrics().page()])
        await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                for path in paths:
                    async with session.get(URL(f"http://127.0.0.1:{server.port}{path}", encoded=True)) as answer:
                        yield answer.status, await answer.text()
        finally:
            await server.close()

    async def main():
        return [each async for each in talk()]

    return asyncio.run(main())


LIMITED = ("/decisions", "/decisions/a/b", "/queue")


@pytest.mark.parametrize(
    "value", ["", "x", "-1", "1.5", "1e3", "%201", "%2B1", "1_0", "%D9%A3", "%C2%B2", "1000001", "9" * 30, "9" * 5000, "0x1"]
)
def test_a_limit_that_is_none_is_refused(value):
    for (status, text), path in zip(told(*(f"{path}?limit={value}" for path in LIMITED)), LIMITED, strict=True):
        assert (path, status) == (path, 400)
        assert "must be a whole number from 0 to 1000000" in text
        assert len(text) < 600


def test_limits_that_are_fine():
    fine = [f"{path}?limit={value}" for path in LIMITED for value in ("0", "1", "00012", "1000000")]
    assert {status for status, text in told(*fine) if "DecisionList" not in text} == {200}
    assert [status for status, _ in told("/decisions/a/b?limit=1000000")] == [404]


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("/decisions?limit=1&limit=2", "limit is given more than once"),
        ("/decisions?name=a/b", 'name is "a/b" and must be the name of an object'),
        ("/decisions?name=", 'name is "" and must be'),
        ("/decisions?nme=a", '/decisions has no parameter "nme"; parameters: name, limit'),
        ("/queue?pod=a/b/c", 'pod is "a/b/c" and must be NAME or NAMESPACE/NAME'),
        ("/queue?pod=%ff%0a", "pod is "),
        ("/queue?state=%ed%a0%80", "is no state; states: "),
        ("/queue?state=" + "%0a" * 2000, "is no state; states: "),
        ("/queue?stat=gated", '/queue has no parameter "stat"; parameters: pod, state, limit'),
        ("/decisions/a/b?name=a", 'has no parameter "name"; parameters: limit'),
        ("/shadow?limit=3", '/shadow has no parameter "limit"; it has none'),
    ],
)
def test_other_parameters_are_checked_too(path, says):
    ((status, text),) = told(path)
    assert status == 400
    assert says in text
    assert text.isascii()
    assert text.count("\n") == 1
    assert len(text) < 800


@pytest.mark.parametrize("path", ["/decisions/%ff/%ed%a0%80", "/decisions/%00/%0a", "/decisions/a%2Fb/c", "/readyz/%ff"])
def test_strange_paths_are_not_found(path):
    ((status, _),) = told(path)
    assert status == 404


@pytest.mark.parametrize("path", ["/readyz?exclude=%ff%00&x=%ed%a0%80", "/metrics?x=1&name[]=%ff"])
def test_probes_and_scrapers_may_add_parameters(path):
    ((status, _),) = told(path)
    assert status in (200, 500)


@pytest.mark.parametrize(
    "accept", ["", "x", ";;q=,", "application/openmetrics-text;version=9;q=x", "text/plain;version=" + "1" * 3000]
)
def test_formats_that_nobody_knows(accept):
    async def talk():
        server = Server([], [Metrics().page()])
        await server.start("127.0.0.1", 0)
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{server.port}/metrics", headers={"Accept": accept}) as answer,
            ):
                return answer.status
        finally:
            await server.close()

    assert asyncio.run(talk()) == 200


def test_a_page_that_fails_is_told_once(caplog):
    failing = Page("/metrics", lambda _: 1 / 0, private=False)

    async def talk():
        server = Server([], [failing])
        await server.start("127.0.0.1", 0)
        try:
            async with aiohttp.ClientSession() as session:
                for _ in range(5):
                    async with session.get(f"http://127.0.0.1:{server.port}/metrics") as answer:
                        assert (answer.status, await answer.text()) == (500, "this page failed; the log says why\n")
        finally:
            await server.close()

    asyncio.run(talk())
    (record,) = caplog.records
    assert "ZeroDivisionError" in record.stowplan_values["trace"]


def test_long_messages_are_cut_on_the_page_of_the_queue():
    scene = Scene().start("node n1 cpu=1\npod a cpu=2")
    scene.run()
    ledger = scene.loop.ledger
    ledger.queue.pods["default/a"].message = "x" * 10**6
    shown = json.loads(queue(lambda: ledger).answer(Asked({}, {}, "", local=True)).body)
    assert shown["items"][0]["message"] == "x" * 4096 + " ..."
