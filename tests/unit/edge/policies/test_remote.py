from __future__ import annotations

import pytest

from stowplan.edge.policies import remote
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.remote import History, RollbackError
from unit.edge.kube.rig import caller, run
from unit.edge.policies.configmaps import ConfigMaps
from unit.edge.policies.offering import BAD, LABELLED, document, keeper, offer

PLACE = Reference("s", "policy")
TEXTS = [document(), document(LABELLED.format("a")), document(LABELLED.format("b"))]


def server_with_history(holds):
    """An API server whose ConfigMap has had three good policies, and holds this text now; None: it is deleted."""
    server = ConfigMaps()

    async def test():
        kept, _ = keeper(TEXTS[0])
        clerk = Clerk(kept, PLACE, caller(server), "me")
        for text in TEXTS:
            await kept.offer(offer(text))
            await clerk.write()

    run(test)
    if holds is not None:
        server.put("policy", {"policy.yaml": holds})
    return server


def roll_back(server, number=None):
    async def test():
        return await History(PLACE, server).roll_back(number)

    return run(test).entry.version


@pytest.mark.parametrize(("holds", "version"), [(TEXTS[2], 2), (BAD["syntax"], 3), (TEXTS[0], 3), (None, 3)])
def test_the_newest_good_version_that_is_not_there(holds, version):
    server = server_with_history(holds)
    assert roll_back(server) == version
    assert server.objects["policy"]["data"] == {"policy.yaml": TEXTS[version - 1]}


def test_a_named_version():
    server = server_with_history(TEXTS[2])
    assert roll_back(server, 1) == 1
    assert server.objects["policy"]["data"]["policy.yaml"] == TEXTS[0]


@pytest.mark.parametrize(("number", "says"), [(7, "no version 7: there are 1, 2, 3"), (3, "holds version 3 already")])
def test_versions_that_cannot_be(number, says):
    with pytest.raises(RollbackError, match=says):
        roll_back(server_with_history(TEXTS[2]), number)


def test_without_a_history():
    server = ConfigMaps()
    server.put("policy", {"policy.yaml": TEXTS[0]})
    with pytest.raises(RollbackError, match="no history"):
        roll_back(server)


def test_an_edit_in_between_is_not_lost():
    server = server_with_history(TEXTS[2])

    async def test():
        history, request = History(PLACE, server), server.request

        async def hastily(each):
            if each.method == "PATCH":
                server.put("policy", {"policy.yaml": TEXTS[1]})
            return await request(each)

        server.request = hastily
        await history.roll_back(1)

    with pytest.raises(RollbackError, match="just been changed by somebody else"):
        run(test)
    assert server.objects["policy"]["data"]["policy.yaml"] == TEXTS[1]


@pytest.fixture
def answering(monkeypatch):
    """The command line asks this server."""

    def use(server):
        def at_server(reference, kubeconfig, context, work):  # noqa: ARG001 - as the real one
            async def test():
                return await work(History(reference, server))

            return run(test)

        monkeypatch.setattr(remote, "at_server", at_server)

    return use


def test_the_command(answering, capsys):
    from stowplan.cli.main import run as stowplan  # noqa: PLC0415 - only here

    server = server_with_history(TEXTS[2])
    answering(server)
    named = ["--policy-configmap", "s/policy"]
    assert stowplan(["policy", "history", *named]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["VERSION", "3", "2", "1"]
    assert lines[1][-3:] == ["in", "the", "ConfigMap"]
    assert stowplan(["policy", "rollback", *named, "--to", "1"]) == 0
    assert "version 1 (hash " in capsys.readouterr().out
    assert stowplan(["policy", "rollback", *named, "--to", "9"]) == 1
    assert "no version 9" in capsys.readouterr().err
    server.down = True
    assert stowplan(["policy", "history", *named]) == 3
    assert "cannot be asked: connection refused" in capsys.readouterr().err
    assert stowplan(["policy", "history", "--policy-configmap", "nonsense"]) == 2


def test_asking_nobody():
    async def look(history):
        return await history.versions()

    with pytest.raises(remote.RemoteError):
        remote.at_server(PLACE, "/nonexistent/kubeconfig", None, look)
