from __future__ import annotations

import asyncio

import pytest

from stowplan.edge.policies.configmap import ConfigMap, PolicyConfigMap, Reference, offer_of
from unit.edge.kube.rig import Notebook, clock, run
from unit.edge.policies.configmaps import ConfigMaps
from unit.edge.policies.offering import BAD, LABELLED, NEVER, document, keeper

PLACE = Reference("s", "policy")


def follow(script, *, first=None, reference=PLACE):
    """Runs a script of users beside a follower; gives what was told, the keeper, the server and what was observed."""
    server, notebook, found = ConfigMaps(), Notebook(), []

    async def test():
        kept, told = keeper(first)
        found.extend((told, kept, server, notebook))
        task = asyncio.create_task(PolicyConfigMap(reference, kept, server, clock(), notebook).run())
        await script(server, kept)
        task.cancel()

    run(test)
    return found


def test_edits_are_offered_as_they_come():
    async def script(server, kept):
        server.put("policy", {"policy.yaml": document()})
        await asyncio.wait_for(kept.first.wait(), 5)
        for label in "abc":
            server.put("policy", {"policy.yaml": document(LABELLED.format(label))})
            await asyncio.sleep(0.05)
        server.put("policy", {"policy.yaml": BAD["unknown plugin"]})
        await asyncio.sleep(0.05)

    told, kept, _, _ = follow(script)
    assert told.generations == [0, 1, 2, 3]
    assert kept.refused.reason.startswith("configmap s/policy[policy.yaml]:6:")
    assert kept.in_force.offer.about["uid"] == "uid-11"


def test_deleted_and_recreated():
    async def script(server, kept):
        server.put("policy", {"policy.yaml": document()})
        await asyncio.sleep(1)
        server.delete("policy")
        await asyncio.sleep(1)
        assert kept.trouble == "configmap s/policy is not there"
        server.put("policy", {"policy.yaml": document(NEVER)})
        await asyncio.sleep(1)
        server.delete("policy")
        server.put("policy", {"policy.yaml": document(NEVER)})
        await asyncio.sleep(1)

    told, kept, _, _ = follow(script)
    assert told.losses == ["configmap s/policy is not there"]
    assert told.generations == [0, 1]
    assert kept.trouble == ""


def test_missing_at_first():
    async def script(server, kept):
        await asyncio.sleep(1)
        assert kept.missing() == "no policy yet; configmap s/policy is not there"
        server.put("policy", {"policy.yaml": document()})
        await asyncio.wait_for(kept.first.wait(), 1)

    told, kept, _, _ = follow(script)
    assert (told.generations, kept.missing()) == ([0], "")


def test_a_watch_that_breaks_before_there_is_a_good_policy_is_told_only_until_it_is_back():
    """The object need not have changed meanwhile."""

    async def script(server, kept):
        server.put("policy", {"policy.yaml": BAD["unknown plugin"]})
        await asyncio.wait_for(kept.heard.wait(), 5)
        server.break_watches()
        await asyncio.sleep(0.01)
        assert kept.trouble == "configmap s/policy cannot be read: connection reset"
        await asyncio.sleep(5)

    _, kept, _, _ = follow(script)
    assert kept.trouble == ""
    assert kept.refused is not None


def test_a_server_that_is_out_of_reach_is_said():
    async def script(server, kept):
        server.down = True
        await asyncio.sleep(3)
        assert kept.missing() == "no policy yet; configmap s/policy cannot be read: connection refused"
        server.put("policy", {"policy.yaml": document()})
        server.down = False
        await asyncio.wait_for(kept.first.wait(), 60)

    told, _, _, notebook = follow(script)
    assert told.generations == [0]
    assert ("ConfigMap", "connection refused") in notebook.failures


@pytest.mark.parametrize("how", ["broken", "expired"])
def test_what_was_missed_while_the_watch_was_away(how):
    async def script(server, kept):
        server.put("policy", {"policy.yaml": document()})
        await asyncio.sleep(1)
        server.down = True
        server.gone = how == "expired"
        server.break_watches()
        await asyncio.sleep(1)
        server.put("policy", {"policy.yaml": document(NEVER)})
        server.down = False
        await asyncio.sleep(60)
        assert kept.trouble == ""

    told, _, _, notebook = follow(script)
    assert told.generations == [0, 1]
    assert ("expired" in notebook.watches) is (how == "expired")


def test_the_first_policy_may_come_while_another_is_in_force():
    """After a start with the last good one."""

    async def script(server, kept):  # noqa: ARG001 - as all scripts
        server.put("policy", {"policy.yaml": document(NEVER)})
        await asyncio.sleep(1)

    told, _, _, _ = follow(script, first=document())
    assert told.generations == [0, 1]


@pytest.mark.parametrize(
    ("key", "data", "says"),
    [
        ("", {"a": "x: 1"}, "configmap s/policy[a]"),
        ("", {"a": "x", "policy.yaml": "x: 1"}, "configmap s/policy[policy.yaml]"),
        ("a", {"a": "x: 1", "policy.yaml": "x"}, "configmap s/policy[a]"),
    ],
)
def test_the_key_that_counts(key, data, says):
    found = offer_of(Reference("s", "policy", key), ConfigMap(data=data))
    assert (found.wrong, found.source.name, found.source.text) == (None, says, "x: 1")


@pytest.mark.parametrize(
    ("key", "data", "says"),
    [
        ("", {"a": "x", "b": "y"}, 'has no key "policy.yaml", but a, b: name the one that counts'),
        ("c", {"a": "x"}, 'has no key "c", but a'),
        ("", None, "holds nothing under data"),
        ("", {"a": " \n"}, "[a]: the value is empty"),
    ],
)
def test_a_key_that_is_not_there(key, data, says):
    assert says in offer_of(Reference("s", "policy", key), ConfigMap(data=data)).wrong.message


@pytest.mark.parametrize(
    ("text", "found"),
    [("a/b", ("a", "b", "")), ("a/b/c.yaml", ("a", "b", "c.yaml")), ("a", None), ("a/", None), ("/b", None), ("a/b/c/d", None)],
)
def test_references(text, found):
    parsed = Reference.parse(text)
    assert (parsed and (parsed.namespace, parsed.name, parsed.key)) == found
