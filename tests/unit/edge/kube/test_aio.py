"""The transport over real sockets, in real time: short waits only."""

import asyncio
import contextlib

import pytest
import yaml
from aiohttp import web

from stowplan.edge.kube import aio
from stowplan.edge.kube.aio import connected
from stowplan.edge.kube.lines import lines
from stowplan.edge.kube.transport import Request, UnansweredError, UnsentError
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError


@pytest.fixture(params=["own connections", "session"], autouse=True)
def _way(request, monkeypatch):
    """Everything is the same over our own connections and over the official client's session."""
    if request.param == "session":
        monkeypatch.setattr(aio, "pool_for", lambda *_: None)


def kubeconfig(folder, server, **user):
    file = folder / "config"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user or {"token": "secret"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    file.write_text(yaml.safe_dump(document))
    return str(file)


@contextlib.asynccontextmanager
async def serving(handler):
    """The address of a server that answers everything with the handler."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
    finally:
        await runner.cleanup()


def against(tmp_path, handler, use, **user):
    """What `use` returns, given a transport to a server with this handler."""

    async def test():
        async with serving(handler) as address, connected(Whereabouts(kubeconfig(tmp_path, address, **user))) as transport:
            return await use(transport)

    return asyncio.run(test())


def test_bytes_go_there_and_back(tmp_path):
    async def echo(request):
        told = [request.method, request.path_qs, request.content_type, request.headers["Authorization"], await request.text()]
        return web.json_response(told, status=201, headers={"Retry-After": "3"})

    async def use(transport):
        return await transport.request(Request("POST", "/api/v1/pods", {"fieldSelector": "a!=b,c!=d"}, b'{"x": 1}'))

    answer = against(tmp_path, echo, use)
    assert (answer.status, answer.retry_after) == (201, 3.0)
    expected = '["POST", "/api/v1/pods?fieldSelector=a%21%3Db%2Cc%21%3Dd", "application/json", "Bearer secret", "{\\"x\\": 1}"]'
    assert answer.body.decode() == expected


def test_a_status_is_an_answer_whatever_it_is(tmp_path):
    async def failing(_):
        return web.Response(status=503, body=b"no")

    answer = against(tmp_path, failing, lambda transport: transport.request(Request("GET", "/")))
    assert (answer.status, answer.body) == (503, b"no")


def test_a_redirection_is_followed(tmp_path):
    async def elsewhere(request):
        if request.path == "/there":
            return web.Response(body=await request.read())
        raise web.HTTPTemporaryRedirect("/there")

    answer = against(tmp_path, elsewhere, lambda transport: transport.request(Request("PUT", "/", body=b"{}")))
    assert (answer.status, answer.body) == (200, b"{}")


@pytest.mark.parametrize("status", [301, 302, 303])
def test_a_write_that_would_become_a_read_has_failed(tmp_path, status):
    seen = []

    async def elsewhere(request):
        seen.append(request.path)
        return web.Response(status=200 if request.path == "/there" else status, headers={"Location": "/there"})

    answer = against(tmp_path, elsewhere, lambda transport: transport.request(Request("POST", "/", body=b"{}")))
    assert (answer.ok, answer.status, seen) == (False, status, ["/"])
    assert against(tmp_path, elsewhere, lambda transport: transport.request(Request("GET", "/"))).ok


def test_a_watch_follows_a_redirection(tmp_path):
    async def elsewhere(request):
        if request.path == "/there":
            return web.Response(body=b"a\nb\n")
        raise web.HTTPTemporaryRedirect("/there")

    async def use(transport):
        async with transport.stream("/", {}, silence=5) as (head, following):
            return head.status, [line async for line in following]

    assert against(tmp_path, elsewhere, use) == (200, [b"a", b"b"])


def test_a_token_goes_before_the_password_in_the_url(tmp_path):
    async def who(request):
        return web.Response(text=request.headers["Authorization"])

    async def test():
        async with serving(who) as address:
            server = address.replace("://", "://u:p@")
            async with connected(Whereabouts(kubeconfig(tmp_path, server))) as transport:
                return await transport.request(Request("GET", "/"))

    assert asyncio.run(test()).body == b"Bearer secret"


def test_another_host_is_told_no_credentials(tmp_path):
    seen = []

    async def other(request):
        seen.append(request.headers.get("Authorization"))
        return web.Response()

    async def test():
        async with serving(other) as there:

            async def elsewhere(_):
                raise web.HTTPTemporaryRedirect(there)

            async with serving(elsewhere) as address, connected(Whereabouts(kubeconfig(tmp_path, address))) as transport:
                return await transport.request(Request("POST", "/", body=b"{}"))

    assert asyncio.run(test()).ok
    assert seen == [None]


def test_a_server_below_a_path(tmp_path):
    async def where(request):
        return web.Response(text=request.path_qs)

    async def test():
        async with serving(where) as address, connected(Whereabouts(kubeconfig(tmp_path, address + "/clusters/c/"))) as transport:
            return await transport.request(Request("GET", "/api", {"limit": "5"}))

    assert asyncio.run(test()).body == b"/clusters/c/api?limit=5"


def test_a_proxy_is_asked_instead(tmp_path, monkeypatch):
    """It is given the whole URL, of a server that is not there."""

    async def proxy(request):
        return web.Response(text=str(request.url))

    async def test():
        async with serving(proxy) as address:
            monkeypatch.setenv("http_proxy", address)
            async with connected(Whereabouts(kubeconfig(tmp_path, "http://api.invalid"))) as transport:
                return await transport.request(Request("GET", "/api"))

    assert asyncio.run(test()).body == b"http://api.invalid/api"


def test_who_cannot_connect_has_sent_nothing(tmp_path):
    async def test():
        async with connected(Whereabouts(kubeconfig(tmp_path, "http://127.0.0.1:1"))) as transport:
            with pytest.raises(UnsentError):
                await transport.request(Request("POST", "/", body=b"{}"))
            with pytest.raises(UnsentError):
                async with transport.stream("/", {}, silence=1):
                    pass

    asyncio.run(test())


def test_who_gets_no_answer_may_have_been_heard(tmp_path):
    async def slow(_):
        await asyncio.sleep(5)

    async def use(transport):
        with pytest.raises(UnansweredError):
            await transport.request(Request("POST", "/", body=b"{}", seconds=0.1))

    against(tmp_path, slow, use)


def test_a_broken_connection_is_no_answer(tmp_path):
    async def breaking(request):
        request.transport.close()

    async def use(transport):
        with pytest.raises(UnansweredError):
            await transport.request(Request("POST", "/", body=b"{}"))

    against(tmp_path, breaking, use)


async def _read(transport, silence=5.0):
    async with transport.stream("/", {"watch": "true"}, silence=silence) as (answer, following):
        return answer, [line async for line in following]


def test_lines_of_any_length_arrive_whole(tmp_path):
    long = b"x" * 3_000_000

    async def watch(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for part in (b"a\nb", b"c\n\n" + long, b"\nlast"):
            await response.write(part)
        return response

    answer, found = against(tmp_path, watch, _read)
    assert answer.status == 200
    assert found == [b"a", b"bc", b"", long, b"last"]


def test_silence_ends_a_watch(tmp_path):
    async def watch(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"a\n")
        await asyncio.sleep(5)

    async def use(transport):
        with pytest.raises(UnansweredError):
            await _read(transport, silence=0.2)

    against(tmp_path, watch, use)


def test_a_refused_watch_says_why(tmp_path):
    async def refusing(_):
        return web.Response(status=410, body=b'{"message": "too old"}')

    answer, found = against(tmp_path, refusing, _read)
    assert (answer.status, answer.body, found) == (410, b'{"message": "too old"}', [])


def test_new_credentials_are_looked_for_when_old_ones_are_refused(tmp_path, monkeypatch):
    """A plugin that is run for credentials gives another one every time."""
    monkeypatch.setattr("stowplan.edge.kube.credentials.RELOAD_SECONDS", 0.0)
    plugin, seen = tmp_path / "plugin", []
    count, credential = tmp_path / "count", '{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1", %s}'
    told = credential % '"status": {"token": "t%s"}'
    plugin.write_text(f"#!/bin/sh\necho x >> {count}\nprintf '{told}' $(wc -l < {count})\n")
    plugin.chmod(0o755)

    async def guarded(request):
        seen.append(request.headers["Authorization"])
        return web.Response(status=200 if seen[-1] == "Bearer t2" else 401)

    async def use(transport):
        return [(await transport.request(Request("GET", "/"))).status for _ in range(2)]

    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    assert against(tmp_path, guarded, use, exec=run) == [200, 200]
    assert seen == ["Bearer t1", "Bearer t2", "Bearer t2"]


def test_no_whereabouts_are_told_as_such(tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)

    async def test():
        async with connected(Whereabouts(str(tmp_path / "missing"))):
            pass

    with pytest.raises(WhereaboutsError, match="no connection to an API server"):
        asyncio.run(test())


def test_lines_without_a_stream():
    async def chunks(*parts):
        for part in parts:
            yield part

    async def read(*parts):
        return [line async for line in lines(chunks(*parts))]

    assert asyncio.run(read(b"a", b"\n", b"\nb\nc")) == [b"a", b"", b"b", b"c"]
    assert asyncio.run(read()) == []
