"""Credential plugins that fail or hang, and credentials that are renewed."""

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
import time

import pytest
from aiohttp import web

from stowplan.edge.kube import credentials, execplugin
from stowplan.edge.kube.aio import connected
from stowplan.edge.kube.credentials import Identity, obtain
from stowplan.edge.kube.whereabouts import Whereabouts, WhereaboutsError
from unit.edge.kube.kubeconfigs import (
    CLUSTER,
    SERVER,
    TOKEN,
    USER,
    VERSION,
    changed,
    document,
    found,
    nowhere,
    refused,
    written,
)
from unit.edge.kube.test_aio import serving

__all__ = ["nowhere", "written"]


@pytest.fixture
def plugin(tmp_path):
    """The `exec` of a user, which runs a shell script."""

    def make(script, **more):
        file = tmp_path / "plugin"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o755)
        return {"exec": {"apiVersion": VERSION, "command": str(file), "interactiveMode": "Never", **more}}

    return make


def answering(**status):
    """A script that answers so."""
    return f"echo '{json.dumps({'kind': 'ExecCredential', 'apiVersion': VERSION, 'status': status})}'"


def test_a_plugin_is_told_about_the_cluster_and_says_for_how_long(written, plugin, tmp_path):
    script = f'printf %s "$KUBERNETES_EXEC_INFO$1$X" > {tmp_path}/told\n' + answering(
        **TOKEN, expirationTimestamp="2999-01-01T00:00:00Z"
    )
    user = plugin(script, args=["-a"], env=[{"name": "X", "value": "-x"}], provideClusterInfo=True)
    user["exec"]["command"] = "./plugin"
    credential = found(written(document(user=user)))
    assert credential.authorization == "Bearer t"
    assert credential.seconds > 1e9
    told = (tmp_path / "told").read_text()
    assert told.endswith("-a-x")
    assert json.loads(told.removesuffix("-a-x"))["spec"] == {"interactive": False, "cluster": {"server": SERVER}}


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo log in first >&2; echo please >&2; exit 3", "fails with 3: log in first; please"),
        ("exit 1", "fails with 1 and says nothing"),
        ("kill -9 $$", "was ended by signal 9"),
        ("true", "answers no JSON"),
        ("echo 5", "answers no ExecCredential"),
        ('echo \'{"kind": "ExecCredential", "apiVersion": "v9"}\'', "answers in apiVersion 'v9'"),
        (answering(), "neither a token nor a client certificate"),
        (answering(token=5), "is no text"),
        (answering(clientCertificateData="x"), "one of clientCertificateData and clientKeyData"),
        (answering(**TOKEN, expirationTimestamp="soon"), "is no time"),
        ("yes", "answers with more than"),
    ],
)
def test_a_plugin_that_fails_leaves_nobody_anonymous(written, plugin, tmp_path, script, told):
    text = refused(written(document(user={**plugin(script), "token": "other"})))
    assert told in text
    assert f'the credential plugin "{tmp_path}/plugin"' in text


def test_a_plugin_that_is_not_there(written):
    user = {"exec": {"apiVersion": VERSION, "command": "no-such-plugin", "interactiveMode": "Never", "installHint": "get it"}}
    assert "cannot be run: No such file or directory; get it" in refused(written(document(user=user)))
    user["exec"]["interactiveMode"] = "Always"
    assert "standard input is no terminal" in refused(written(document(user=user)))


def gone(file):
    """Whether the process ends whose number this file holds."""
    pid = int(file.read_text())
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


def hanging(tmp_path):
    """A script that waits in a child, which holds its output."""
    return f"sleep 600 & echo $! > {tmp_path}/child; echo log in at example.org >&2; wait"


def test_a_plugin_that_hangs_is_named_and_then_ended(written, plugin, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(execplugin, "PATIENCE", 1.0)
    monkeypatch.setattr(execplugin, "SILENCE", 0.1)
    text = refused(written(document(user=plugin(hanging(tmp_path)))))
    assert "does not come to an end within 1 s: log in at example.org" in text
    assert f'waiting for kubeconfig {tmp_path}/config: user "u": the credential plugin' in caplog.text
    assert gone(tmp_path / "child")


async def until(true, seconds=10):
    async with asyncio.timeout(seconds):
        while not true():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.02)


def test_a_plugin_ends_with_whoever_waits_for_it(written, plugin, tmp_path):
    file = written(document(user=plugin(hanging(tmp_path))))

    async def cancelled():
        task = asyncio.ensure_future(obtain(Whereabouts(file)))
        await begun(tmp_path)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert gone(tmp_path / "child")


def identified(file, use):
    """What `use` returns, given an identity and the list of configurations that it wants connections for."""

    async def test():
        used = []
        identity = Identity(Whereabouts(file), used.append)
        await identity.start()
        try:
            return await use(identity, used)
        finally:
            await identity.close()

    return asyncio.run(test())


@pytest.mark.parametrize("broken", ["a: [", "", "[]", None, changed(*USER, to={"token": 5}), changed("current-context", to="x")])
def test_a_kubeconfig_that_is_broken_later_changes_nothing(written, tmp_path, monkeypatch, caplog, broken):
    monkeypatch.setattr(credentials, "RELOAD_SECONDS", 0.0)
    file = written(document())

    async def use(identity, _):
        if broken is None:
            os.remove(file)  # noqa: PTH107
        else:
            written(broken)
        first = [await identity.renewed(5.0) for _ in range(3)]
        kept = identity.authorization()
        written(document(user={"token": "new"}))
        return first, kept, await identity.renewed(5.0), identity.authorization()

    if broken is not None and not isinstance(broken, str) and broken["current-context"] == "x":
        # who switches to another context does not mean this process
        assert identified(file, use)[0] == [True, True, True]
        return
    assert identified(file, use) == ([False, False, False], "Bearer t", True, "Bearer new")
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "the old credentials are kept"
    assert str(tmp_path) in record.stowplan_values["message"]


def test_who_is_refused_waits_for_new_credentials_no_longer_than_its_time(written, plugin, tmp_path, monkeypatch):
    monkeypatch.setattr(credentials, "RELOAD_SECONDS", 0.0)
    file = written(document())

    async def use(identity, _):
        written(document(user=plugin(hanging(tmp_path))))
        begun = time.monotonic()
        waited = await asyncio.gather(*(identity.renewed(0.5) for _ in range(3)))
        return waited, identity.authorization(), time.monotonic() - begun

    waited, kept, seconds = identified(file, use)
    assert (waited, kept) == ([False] * 3, "Bearer t")
    assert seconds < 3
    assert gone(tmp_path / "child")


def test_tokens_are_renewed_before_they_end(written, plugin, tmp_path, monkeypatch):
    """Without a refusal, and without new connections: those that there are know nothing of tokens."""
    monkeypatch.setattr(credentials, "RELOAD_SECONDS", 0.1)
    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3))
    count = f"echo x >> {tmp_path}/count; wc -l < {tmp_path}/count > {tmp_path}/now"
    told = answering(**TOKEN, expirationTimestamp=end).replace('"t"', f"\"t'$(cat {tmp_path}/now)'\"")
    file = written(document(user=plugin(f"{count}\n{told}")))

    async def use(identity, used):
        assert identity.authorization() == "Bearer t1"
        await until(lambda: identity.authorization() == "Bearer t2")
        return time.time(), len(used)

    when, connections = identified(file, use)
    assert when < time.mktime(time.strptime(end, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    assert connections == 1


def test_a_token_file_is_read_again(written, tmp_path, monkeypatch):
    monkeypatch.setattr(credentials, "RELOAD_SECONDS", 0.05)
    monkeypatch.setattr(credentials, "TOKEN_FILE_SECONDS", 0.05)
    (tmp_path / "token").write_text("one\n")

    async def use(identity, used):
        assert identity.authorization() == "Bearer one"
        (tmp_path / "token").unlink()
        await asyncio.sleep(0.2)
        assert identity.authorization() == "Bearer one"
        (tmp_path / "token").write_text("two\n")
        await until(lambda: identity.authorization() == "Bearer two")
        return len(used)

    assert identified(written(document(user={"tokenFile": "token"})), use) == 1


def test_another_server_needs_other_connections(written, monkeypatch):
    monkeypatch.setattr(credentials, "RELOAD_SECONDS", 0.0)

    async def use(identity, used):
        written(document({"server": "https://127.0.0.1:7443"}))
        await identity.renewed(5.0)
        return [each.host for each in used]

    assert identified(written(document()), use) == [SERVER, "https://127.0.0.1:7443"]


@contextlib.contextmanager
def scheduling(file):
    """`stowplan run` with this kubeconfig, in a process of its own."""
    main = "from stowplan.cli.main import main; main()"
    command = [sys.executable, "-c", main, "run", "--kubeconfig", file, "--leader-elect=false", "--port=0", "--log-format=json"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def begun(tmp_path):
    """The plugin runs that hangs."""
    await until(lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), 60)


def test_a_scheduler_without_a_connection_says_so(written):
    with scheduling(written(changed(*CLUSTER, "server"))) as process:
        last = json.loads(process.communicate(timeout=60)[1].splitlines()[-1])
    assert process.returncode == 3
    assert last["level"] == "error"
    assert "has no server" in last["msg"]


def test_a_scheduler_can_be_stopped_while_a_plugin_hangs(written, plugin, tmp_path):
    with scheduling(written(document(user=plugin(hanging(tmp_path))))) as process:
        asyncio.run(begun(tmp_path))
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert gone(tmp_path / "child")


def test_a_scheduler_can_be_stopped_while_a_plugin_hangs_at_a_renewal(written, plugin, tmp_path):
    async def refusing(_):
        return web.Response(status=401)

    first = f"[ -e {tmp_path}/once ] || {{ : > {tmp_path}/once; {answering(**TOKEN)}; exit; }}"

    async def test():
        async with serving(refusing) as address:
            file = written(document({"server": address}, plugin(f"{first}\n{hanging(tmp_path)}")))
            with scheduling(file) as process:
                await begun(tmp_path)
                process.send_signal(signal.SIGTERM)
                stopped = time.monotonic()
                await asyncio.to_thread(process.wait, 20)
                return process.returncode, time.monotonic() - stopped

    code, seconds = asyncio.run(test())
    assert code == 0
    assert seconds < 15
    assert gone(tmp_path / "child")


def test_a_transport_that_never_begins_is_closed(written):
    async def test():
        async with connected(Whereabouts(written("a: ["))):
            pass

    with pytest.raises(WhereaboutsError, match="is no YAML"):
        asyncio.run(test())
