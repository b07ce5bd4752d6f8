from __future__ import annotations

import asyncio

from stowplan.edge.policies import history
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.history import INDEX, decode_kept, versions, with_version
from unit.edge.kube.rig import caller, encode, run
from unit.edge.policies.configmaps import ConfigMaps
from unit.edge.policies.offering import BAD, LABELLED, NEVER, document, keeper, offer

PLACE = Reference("s", "policy")
ABOUT = {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "s", "name": "policy", "uid": "u", "resourceVersion": "7"}


def written(script, leads=lambda: True):
    """Runs a script of offers beside a clerk; gives the server."""
    server = ConfigMaps()

    async def test():
        kept, _ = keeper(document())
        clerk = Clerk(kept, PLACE, caller(server, may_write=leads), "me_1")
        kept.listeners.append(clerk)
        task = asyncio.create_task(clerk.run())
        await asyncio.sleep(0.5)
        await script(kept, server)
        task.cancel()

    run(test)
    return server


def kept_versions(server):
    return versions(decode_kept(encode(server.objects["policy-history"])))


def test_events_say_why_and_where():
    async def script(kept, server):  # noqa: ARG001 - as all scripts
        await kept.offer(offer(BAD["type error"], "configmap s/policy[p]", ABOUT))
        await kept.offer(offer(document(NEVER), "configmap s/policy[p]", ABOUT))
        await asyncio.sleep(2)

    server = written(script)
    rejected, reloaded = server.events
    assert (rejected["reason"], rejected["type"], rejected["action"]) == ("PolicyRejected", "Warning", "Reload")
    assert rejected["note"].startswith("configmap s/policy[p]:7:")
    assert "; generation 0, hash " in rejected["note"]
    assert rejected["note"].endswith("stays in force")
    assert rejected["regarding"] == ABOUT
    assert rejected["metadata"]["namespace"] == "s"
    assert (rejected["reportingController"], rejected["reportingInstance"]) == ("stowplan.io/scheduler", "me_1")
    assert rejected["eventTime"].startswith("2027-01-15T08:00:0")
    assert (reloaded["reason"], reloaded["type"]) == ("PolicyReloaded", "Normal")
    assert reloaded["note"].startswith("generation 1, hash ")
    assert rejected["metadata"]["name"] != reloaded["metadata"]["name"]


def test_a_standby_writes_nothing_until_it_leads():
    leads = []

    async def script(kept, server):
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await kept.offer(offer(BAD["syntax"], about=ABOUT))
        await asyncio.sleep(5)
        assert server.calls == []
        leads.append(True)
        await asyncio.sleep(5)

    server = written(script, lambda: bool(leads))
    assert [reason for reason, _, _ in server.told()] == ["PolicyRejected"]
    assert [each.text for each in kept_versions(server)] == [document(NEVER)]


def test_good_versions_are_kept_and_bad_ones_are_not():
    async def script(kept, server):  # noqa: ARG001 - as all scripts
        for label in "abc":
            await kept.offer(offer(document(LABELLED.format(label)), about=ABOUT))
            await kept.offer(offer(BAD["syntax"], about=ABOUT))
            await asyncio.sleep(1)

    server = written(script)
    known = kept_versions(server)
    assert [each.entry.version for each in known] == [1, 2, 3, 4]
    assert known[0].text == document()
    assert known[3].text == document(LABELLED.format("c"))
    assert set(server.objects["policy-history"]["data"]) == {INDEX, "v1.yaml", "v2.yaml", "v3.yaml", "v4.yaml"}
    assert len({each.entry.hash for each in known}) == 4


def test_the_history_is_gone_on_with_after_a_restart():
    first = written(lambda kept, server: asyncio.sleep(1))  # noqa: ARG005 - as all scripts
    (known,) = kept_versions(first)

    async def script(kept, server):
        server.objects["policy-history"] = first.objects["policy-history"]
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(1)
        await kept.offer(offer(document(), about=ABOUT))
        await asyncio.sleep(1)

    again = kept_versions(written(script))
    assert [each.entry.hash for each in again[-2:]][1] == known.entry.hash
    assert [each.entry.version for each in again] == [1, 2, 3]


def test_a_history_that_cannot_be_written_is_tried_again():
    async def script(kept, server):
        server.down = True
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(3)
        server.down = False
        await asyncio.sleep(10)

    assert [each.entry.version for each in kept_versions(written(script))] == [1, 2]


def test_the_oldest_versions_make_room():
    known = ()
    for number in range(15):
        known = with_version(known, f"h{number}", "x" * 10, "t", ())
    assert [each.entry.version for each in known] == list(range(6, 16))
    known = with_version(known, "h", "y" * (history.LARGEST - 15), "t", ())
    assert [each.entry.version for each in known] == [15, 16]


def test_an_index_that_somebody_has_broken_is_begun_anew():
    kept = history.Kept({}, {INDEX: "[", "v1.yaml": "x"})
    assert versions(kept) == ()
