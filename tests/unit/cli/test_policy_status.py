"""What `stowplan policy status` shows of names that are served no more, and `policy history` of an index that is broken."""

import json

import pytest

from stowplan.cli import policy, server
from stowplan.cli.main import run
from stowplan.edge.policies import history


@pytest.mark.parametrize(("count", "code"), [(3, 0), (0, 0)])
def test_names_that_are_served_no_more(monkeypatch, capsys, count, code):
    told = {"generation": 2, "hash": "abc", "source": "policy.yaml", "profiles": ["a"], "unserved": {"old": count}}
    monkeypatch.setattr(server, "fetch", lambda *_: told)
    assert run(["policy", "status"]) == code
    assert f'no profile has schedulerName "old" any more; pods that wait for it: {count}' in capsys.readouterr().out


@pytest.mark.parametrize("form", ["table", "json"])
def test_what_is_wrong_with_a_history(monkeypatch, capsys, form):
    kept = history.Kept({}, {history.INDEX: '[{"version": 1, "hash": "a", "time": "t", "key": "v1.yaml"}, 7]', "v1.yaml": "x"})
    monkeypatch.setattr(policy, "_asked", lambda *_: (history.known(kept, str), None))
    assert run(["policy", "history", "-o", form]) == 0
    said = capsys.readouterr().out
    note = "item 1 of versions.json cannot be read: "
    if form == "json":
        found = json.loads(said)
        assert [each["version"] for each in found["items"]] == [1]
        assert found["notes"][0].startswith(note)
    else:
        assert f"left out: {note}" in said
