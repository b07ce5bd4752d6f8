from __future__ import annotations

import asyncio
import json

from stowplan.edge.policies import history
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.history import INDEX, Entry, decode_kept, versions, with_version
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
    assert "; version 1 (generation 0 here, hash " in rejected["note"]
    assert rejected["note"].endswith("stays in force")
    assert rejected["regarding"] == ABOUT
    assert rejected["metadata"]["namespace"] == "s"
    assert (rejected["reportingController"], rejected["reportingInstance"]) == ("stowplan.io/scheduler", "me_1")
    assert rejected["eventTime"].startswith("2027-01-15T08:00:0")
    assert (reloaded["reason"], reloaded["type"]) == ("PolicyReloaded", "Normal")
    assert reloaded["note"].startswith("version 2 (generation 1 here, hash ")
    assert rejected["metadata"]["name"] != reloaded["metadata"]["name"]


def test_a_standby_writes_nothing_until_it_leads():
    leads = []

    async def script(kept, server):
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await kept.offer(offer(BAD["syntax"], about=ABOUT))
        await asyncio.sleep(5)
        assert {method for method, _ in server.calls} == {"GET"}
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
    assert [each.entry.version for each in again] == [2, 1]
    assert again[-1].entry.hash == known.entry.hash


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
        known = with_version(known, Entry(0, f"h{number}", "t", ""), "x" * 10)
    assert [each.entry.version for each in known] == list(range(6, 16))
    known = with_version(known, Entry(0, "h", "t", ""), "y" * (history.LARGEST - 15))
    assert [each.entry.version for each in known] == [15, 16]


def test_an_index_that_somebody_has_broken_is_begun_anew():
    kept = history.Kept({}, {INDEX: "[", "v1.yaml": "x"})
    assert versions(kept) == ()


def test_a_version_that_is_back_keeps_its_number_and_gains_a_time():
    known = ()
    for time, digest in enumerate("abca"):
        known = with_version(known, Entry(0, digest, f"t{time}", ""), f"text {digest}, written {time}")
    assert [(each.entry.version, each.entry.hash) for each in known] == [(2, "b"), (3, "c"), (1, "a")]
    assert known[-1].to_json()["times"] == ["t0", "t3"]
    assert (known[-1].entry.key, known[-1].text) == ("v1.yaml", "text a, written 3")
    assert with_version(known, Entry(0, "d", "t4", ""), "d")[-1].entry.version == 4


def test_rows_of_one_document_that_an_earlier_release_has_left_are_one():
    rows = [{"version": n, "hash": h, "time": f"t{n}", "key": f"v{n}.yaml"} for n, h in ((4, "a"), (5, "b"), (6, "a"), (7, "b"))]
    data = {INDEX: json.dumps(rows)} | {row["key"]: row["hash"] for row in rows}
    found = versions(history.Kept({}, data))
    assert [(each.entry.version, each.entry.before, each.entry.time) for each in found] == [(4, ("t4",), "t6"), (5, ("t5",), "t7")]


def test_a_standby_learns_the_number_of_its_policy():
    numbers = []

    async def script(kept, server):
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(1)
        rows = [{"version": 8, "hash": kept.in_force.digest, "time": "t", "key": "v8.yaml"}]
        server.put("policy-history", {INDEX: json.dumps(rows), "v8.yaml": "x"})
        await asyncio.sleep(60)
        numbers.append(kept.note())

    assert written(script, lambda: False).events == []
    assert numbers[0].startswith("version 8 (generation 1 here, hash ")
