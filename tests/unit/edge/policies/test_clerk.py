from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from stowplan.edge.policies import history
from stowplan.edge.policies.clerk import Clerk
from stowplan.edge.policies.configmap import Reference
from stowplan.edge.policies.history import INDEX, UNREADABLE, Entry, decode_kept, known, with_version
from stowplan.text import Code, Diagnostic, Severity
from stowplan.text.moments import rfc3339
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


def known_of(kept):
    return known(kept, lambda text: f"hash of {text}").versions


def kept_versions(server):
    return known_of(decode_kept(encode(server.objects["policy-history"])))


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
    found = kept_versions(server)
    assert [each.entry.version for each in found] == [1, 2, 3, 4]
    assert found[0].text == document()
    assert found[3].text == document(LABELLED.format("c"))
    assert set(server.objects["policy-history"]["data"]) == {INDEX, "v1.yaml", "v2.yaml", "v3.yaml", "v4.yaml"}
    assert len({each.entry.hash for each in found}) == 4


def test_the_history_is_gone_on_with_after_a_restart():
    first = written(lambda kept, server: asyncio.sleep(1))  # noqa: ARG005 - as all scripts
    (found,) = kept_versions(first)

    async def script(kept, server):
        server.objects["policy-history"] = first.objects["policy-history"]
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(1)
        await kept.offer(offer(document(), about=ABOUT))
        await asyncio.sleep(1)

    again = kept_versions(written(script))
    assert [each.entry.version for each in again] == [2, 1]
    assert again[-1].entry.hash == found.entry.hash


def test_a_history_that_cannot_be_written_is_tried_again():
    async def script(kept, server):
        server.down = True
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(3)
        server.down = False
        await asyncio.sleep(10)

    assert [each.entry.version for each in kept_versions(written(script))] == [1, 2]


def test_the_oldest_versions_make_room():
    found = ()
    for number in range(15):
        found = with_version(found, Entry(0, f"h{number}", "t", ""), "x" * 10)
    assert [each.entry.version for each in found] == list(range(6, 16))
    found = with_version(found, Entry(0, "h", "t", ""), "y" * (history.LARGEST - 15))
    assert [each.entry.version for each in found] == [15, 16]


def row(number, digest, time="2026-01-01T00:00:00Z", **more):
    return {"version": number, "hash": digest, "time": time, "key": f"v{number}.yaml"} | more


BROKEN = ({"version": "x"}, 7, None, row(2, "b", key=None), {"version": 2, "hash": "b"}, row("2", "b"), row(2, "b", warnings="w"))


@pytest.mark.parametrize("broken", BROKEN)
def test_a_line_that_somebody_has_broken_costs_nothing_else(broken):
    """Its text is a version still."""
    texts = {f"v{number}.yaml": f"text {number}" for number in (1, 2, 3)}
    data = {INDEX: json.dumps([row(1, "a"), broken, row(3, "c")]), **texts}
    found = known(history.Kept({}, data), lambda text: f"hash of {text}")
    assert {each.entry.version: (each.entry.hash, each.text) for each in found.versions} == {
        1: ("a", "text 1"),
        2: ("hash of text 2", "text 2"),
        3: ("c", "text 3"),
    }
    assert found.versions[-1].entry.hash == "c"
    (wrong,) = found.wrong
    assert wrong.startswith("item 1 of versions.json cannot be read: ")


@pytest.mark.parametrize("index", ["[", "{}", "", "null", '"x"'])
def test_a_list_that_cannot_be_read_is_kept_and_texts_tell_what_they_are(index):
    broken = {INDEX: index, "v1.yaml": document(), "v3.yaml": document(LABELLED.format("a")), "v7.yaml": "no policy", "mine": "x"}

    async def script(kept, server):
        server.put("policy-history", dict(broken))
        await kept.offer(offer(document(NEVER), about=ABOUT))
        await asyncio.sleep(1)

    server = written(script)
    data = server.objects["policy-history"]["data"]
    assert data[UNREADABLE] == index
    assert {key: data[key] for key in broken if key != INDEX} == {key: broken[key] for key in broken if key != INDEX}
    assert [(each.entry.version, each.text) for each in kept_versions(server)] == [
        (1, document()),
        (3, document(LABELLED.format("a"))),
        (8, document(NEVER)),
    ]


def test_a_copy_of_a_broken_list_stays_when_more_versions_come():
    async def script(kept, server):
        server.put("policy-history", {INDEX: "["})
        for label in "abc":
            await kept.offer(offer(document(LABELLED.format(label)), about=ABOUT))
            await asyncio.sleep(1)

    server = written(script)
    assert server.objects["policy-history"]["data"][UNREADABLE] == "["
    assert [each.entry.version for each in kept_versions(server)] == [1, 2, 3]


def moment(seconds):
    return rfc3339(1_800_000_000 + seconds)


def test_a_storm_of_edits_pushes_out_only_itself():
    kept, time = (), 0
    for number in range(6):
        kept = with_version(kept, Entry(0, f"good{number}", moment(time), ""), "x")
        time += 3600
    for number in range(50):
        kept = with_version(kept, Entry(0, f"storm{number}", moment(time), ""), "x")
        time += 1
    hashes = [each.entry.hash for each in kept]
    assert hashes == [*(f"good{number}" for number in range(6)), *(f"storm{number}" for number in range(46, 50))]
    kept = with_version(kept, Entry(0, "good6", moment(time), ""), "x")
    assert [each.entry.hash for each in kept][:6] == hashes[:6]


def test_a_version_that_is_in_force_now_and_then_is_not_brief():
    kept, time = (), 0
    for number in range(40):
        digest = "again" if number % 2 else f"other{number}"
        kept = with_version(kept, Entry(0, digest, moment(time), ""), "x")
        time += 50
    assert "again" in [each.entry.hash for each in kept]
    (again,) = [each.entry for each in kept if each.entry.hash == "again"]
    assert again.lasted == 19 * 50


def test_the_first_to_go_are_brief_ones_in_lists_of_earlier_releases_too():
    rows = [row(number, f"h{number}", moment(3600 * number + (number > 4) * 3590)) for number in range(1, 11)]
    data = {INDEX: json.dumps(rows)} | {each["key"]: "x" for each in rows}
    kept = with_version(known_of(history.Kept({}, data)), Entry(0, "new", moment(100_000), ""), "x")
    assert [each.entry.version for each in kept] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    rows[3]["time"] = moment(3600 * 5 + 3580)
    data[INDEX] = json.dumps(rows)
    kept = with_version(known_of(history.Kept({}, data)), Entry(0, "new", moment(100_000), ""), "x")
    assert [each.entry.version for each in kept] == [1, 2, 3, 5, 6, 7, 8, 9, 10, 11]


def test_what_the_live_cluster_shows_of_the_policy_of_a_start_is_told():
    leads, warning = [], Diagnostic(Code.CONSTANT, Severity.WARNING, "rule r0: the filter lets no node pass")

    async def script(kept, server):
        kept.in_force = replace(kept.in_force, offer=offer(document(), about=ABOUT))
        leads.append(True)
        await asyncio.sleep(2)
        leads.clear()
        kept.in_force = now = replace(kept.in_force, warnings=(warning,), tried=True)
        kept.listeners[-1].tried(now, (warning,))
        await asyncio.sleep(2)
        assert server.told() == []
        leads.append(True)
        await asyncio.sleep(2)

    server = written(script, lambda: bool(leads))
    ((reason, tone, note),) = server.told()
    assert (reason, tone) == ("PolicyWarning", "Warning")
    assert note.startswith("version 1 (generation 0 here, hash ")
    assert note.endswith("warning[STW315]: rule r0: the filter lets no node pass")
    (version,) = kept_versions(server)
    assert version.entry.barren
    assert version.entry.before == ()


def test_an_event_that_cannot_be_written_is_tried_again():
    async def script(kept, server):
        server.down = True
        await kept.offer(offer(BAD["syntax"], about=ABOUT))
        await asyncio.sleep(20)
        assert server.told() == []
        server.down = False
        await asyncio.sleep(20)

    assert [reason for reason, _, _ in written(script).told()] == ["PolicyRejected"]


def test_names_that_are_served_no_more_have_an_event_of_their_own():
    async def script(kept, server):  # noqa: ARG001 - as all scripts
        await kept.offer(offer(document(name="other"), about=ABOUT))
        await asyncio.sleep(2)

    reloaded, removed = written(script).told()
    assert reloaded[:2] == ("PolicyReloaded", "Normal")
    assert removed[:2] == ("SchedulerNameRemoved", "Warning")
    assert 'no profile has schedulerName "default-scheduler" any more: new pods of it will wait' in removed[2]


def test_a_version_that_is_back_keeps_its_number_and_gains_a_time():
    found = ()
    for time, digest in enumerate("abca"):
        found = with_version(found, Entry(0, digest, f"t{time}", ""), f"text {digest}, written {time}")
    assert [(each.entry.version, each.entry.hash) for each in found] == [(2, "b"), (3, "c"), (1, "a")]
    assert found[-1].to_json()["times"] == ["t0", "t3"]
    assert (found[-1].entry.key, found[-1].text) == ("v1.yaml", "text a, written 3")
    assert with_version(found, Entry(0, "d", "t4", ""), "d")[-1].entry.version == 4


def test_rows_of_one_document_that_an_earlier_release_has_left_are_one():
    rows = [{"version": n, "hash": h, "time": f"t{n}", "key": f"v{n}.yaml"} for n, h in ((4, "a"), (5, "b"), (6, "a"), (7, "b"))]
    data = {INDEX: json.dumps(rows)} | {row["key"]: row["hash"] for row in rows}
    found = known_of(history.Kept({}, data))
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


def test_names_of_events_about_long_names_are_valid():
    about = ABOUT | {"name": "a" * 230 + "." + "b" * 22}

    async def script(kept, server):  # noqa: ARG001 - as all scripts
        await kept.offer(offer(BAD["type error"], "configmap s/policy[p]", about))
        await asyncio.sleep(2)

    (event,) = written(script).events
    name = event["metadata"]["name"]
    assert len(name) == 253
    assert name.startswith("a" * 230 + ".b")
