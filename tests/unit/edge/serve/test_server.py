from __future__ import annotations

import asyncio
import errno
import socket

import aiohttp
import pytest

from stowplan.edge.serve import Check, Health, Page, Reply, Server, as_json

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
