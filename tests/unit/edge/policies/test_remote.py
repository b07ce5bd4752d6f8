from __future__ import annotations

import pytest

from stowplan.edge.policies import history, remote
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.examine import Examiner
from stowplan.edge.policies.history import Entry, decode_kept
from stowplan.edge.policies.remote import History, RollbackError
from unit.edge.kube.rig import caller, encode, run
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


def roll_back(server, wanted=""):
    async def test():
        return await History(PLACE, server).roll_back(str(wanted))

    return run(test).version.entry.version


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
        remote_history, request = History(PLACE, server), server.request

        async def hastily(each):
            if each.method == "PATCH":
                server.put("policy", {"policy.yaml": TEXTS[1]})
            return await request(each)

        server.request = hastily
        await remote_history.roll_back("1")

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
        return (await history.known()).versions

    with pytest.raises(remote.RemoteError):
        remote.at_server(PLACE, "/nonexistent/kubeconfig", None, look)


def server_with_five(*barren):
    """Five versions were in force, the last one is; these were warned of."""
    server, known = ConfigMaps(), ()
    for number in range(1, 6):
        text = document(LABELLED.format(f"l{number}"))
        digest = Examiner().examine(offer(text), None).digest
        warnings = ("policy.yaml:7:5: warning[STW315]: rule r0: the filter lets no node pass",) if number in barren else ()
        known = history.with_version(known, Entry(0, digest, f"2026-01-0{number}T00:00:00Z", "", warnings), text)
    server.put("policy-history", decode_kept(history.body(PLACE, None, history.Known(), known)).data)
    server.put("policy", {"policy.yaml": known[-1].text})
    return server, known


def test_again_and_again_goes_further_back_and_never_to_and_fro():
    server, known = server_with_five()
    assert [roll_back(server) for _ in range(4)] == [4, 3, 2, 1]
    with pytest.raises(RollbackError, match="no version further back"):
        roll_back(server)
    assert server.objects["policy"]["data"]["policy.yaml"] == known[0].text


def test_the_scheduler_may_pick_each_of_them_up():
    """What was gone back to moves to the end of the history; going back again still goes further back."""
    server, known = server_with_five()
    for wanted in (4, 3, 2, 1):
        assert roll_back(server) == wanted
        now = known[wanted - 1]
        found = history.known(decode_kept(encode(server.objects["policy-history"])), str).versions
        found = history.with_version(found, Entry(0, now.entry.hash, "2026-02-01T00:00:00Z", ""), now.text)
        assert len(found) == 5
        server.put("policy-history", decode_kept(history.body(PLACE, None, history.Known(), found)).data)


def test_versions_that_let_no_node_pass_are_passed_over_unless_they_are_named():
    server, _ = server_with_five(4, 3)
    assert roll_back(server) == 2
    assert roll_back(server, 4) == 4
    server, _ = server_with_five(1, 2, 3, 4)
    with pytest.raises(RollbackError, match="lets some node pass"):
        roll_back(server)


def test_a_bad_text_put_back_by_somebody_is_gone_back_from_as_before():
    server, known = server_with_five()
    assert [roll_back(server), roll_back(server)] == [4, 3]
    server.put("policy", {"policy.yaml": known[4].text})
    assert roll_back(server) == 3


def test_an_edit_is_a_new_beginning():
    server, _ = server_with_five()
    assert [roll_back(server), roll_back(server)] == [4, 3]
    server.put("policy", {"policy.yaml": document(LABELLED.format("new"))})
    assert roll_back(server) == 5


def test_what_was_jumped_over_is_not_gone_forward_to():
    server, _ = server_with_five()
    assert [roll_back(server, 3), roll_back(server)] == [3, 2]


def test_a_hash_names_a_version():
    server, known = server_with_five()
    assert roll_back(server, known[1].entry.hash[:6]) == 2
    with pytest.raises(RollbackError, match="no version ffffffffffff: there are 1, 2, 3, 4, 5"):
        roll_back(server, "ffffffffffff")
    with pytest.raises(RollbackError, match="no version 0"):
        roll_back(server, "0")


def test_the_command_says_what_is_back_and_what_changes(answering, capsys):
    from stowplan.cli.main import run as stowplan  # noqa: PLC0415 - only here

    server, known = server_with_five(4)
    answering(server)
    named = ["--policy-configmap", "s/policy"]
    assert stowplan(["policy", "rollback", *named]) == 0
    told = capsys.readouterr().out
    assert f"version 3 (hash {known[2].entry.hash}, in force since 2026-01-03T00:00:00Z, " in told
    assert "passed over: version 4" in told
    assert "--- version 5\n+++ version 3\n" in told
    assert "-    filter: 'node.labels[?\"l5\"].hasValue()'" in told
    assert "+    filter: 'node.labels[?\"l3\"].hasValue()'" in told
    assert stowplan(["policy", "rollback", *named, "--to", "4"]) == 0
    assert "it was in force with this: policy.yaml:7:5: warning[STW315]" in capsys.readouterr().out
    assert stowplan(["policy", "history", *named]) == 0
    assert capsys.readouterr().out.count("in the ConfigMap") == 1
