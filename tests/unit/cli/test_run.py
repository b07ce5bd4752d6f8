from __future__ import annotations

import json
import os
from datetime import timedelta

import pytest

from stowplan.edge import live

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


@pytest.fixture
def started(stowplan, monkeypatch, tmp_path):
    """Calls `stowplan run` up to where the scheduler would start; gives the answer, and its policy and options if it came there."""
    found = []
    monkeypatch.setattr(live, "run", lambda policy, options: found.append((policy, options)) or 0)
    monkeypatch.setattr("stowplan.edge.logs.set_up", lambda form, verbosity: found.append((form, verbosity)))

    def call(*flags, **configuration):
        path = tmp_path / "scheduler.yaml"
        path.write_text(json.dumps(HEAD | configuration))
        answer = stowplan("run", "--policy", path, *flags)
        return answer, *(found[-1] if len(found) > 1 else (None, None)), found[0] if found else None

    return call


def test_defaults(started):
    answer, policy, options, logging = started()
    assert answer.code == 0
    assert (options.port, options.stale_after, options.kubeconfig, options.seed) == (10259, 120.0, None, None)
    assert policy.configuration.leader_election.leader_elect
    assert logging == ("text", 2)


def test_flags(started):
    flags = (
        "--kubeconfig",
        "k",
        "--context",
        "c",
        "--master",
        "https://a:6443",
        "--bind-address",
        "::1",
        "--port",
        "0",
        "--seed",
        "7",
    )
    answer, _, options, logging = started(*flags, "--stale-after", "1m30s", "--log-format", "json", "--v=4")
    assert answer.code == 0
    assert (options.kubeconfig, options.context, options.master, options.address) == ("k", "c", "https://a:6443", "::1")
    assert (options.port, options.stale_after, options.seed) == (0, 90.0, 7)
    assert logging == ("json", 4)


def test_the_command_line_overrides_leader_election(started):
    flags = ("--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline", "40s", "--leader-elect-retry-period=5s")
    names = ("--leader-elect-resource-name", "mine", "--leader-elect-resource-namespace", "here")
    _, policy, _, _ = started(*flags, *names, leaderElection={"leaseDuration": "20s", "leaderElect": True})
    election = policy.configuration.leader_election
    assert (election.lease_duration, election.renew_deadline) == (timedelta(minutes=1), timedelta(seconds=40))
    assert (election.resource_name, election.resource_namespace) == ("mine", "here")
    assert election.retry_period == timedelta(seconds=5)


@pytest.mark.parametrize(
    ("flag", "answer"), [("--leader-elect=false", False), ("--leader-elect=true", True), ("--leader-elect", True)]
)
def test_leader_election_is_switched_as_kube_schedulers(started, flag, answer):
    _, policy, _, _ = started(flag, leaderElection={"leaderElect": not answer})
    assert policy.configuration.leader_election.leader_elect is answer


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (["--leader-elect-lease-duration=5s"], "must be greater than `RenewDeadline`"),
        (["--leader-elect-retry-period=9s"], "1.2 times retryPeriod"),
        (["--leader-elect-retry-period=nonsense"], "no duration"),
        (["--port", "65536"], "65536"),
        (["--leader-elect=perhaps"], "perhaps"),
        (["--log-format", "xml"], "xml"),
        (["surplus"], "surplus"),
    ],
)
def test_wrong_usage(started, flags, says):
    answer, policy, _, _ = started(*flags)
    assert (answer.code, policy) == (2, None)
    assert says in answer.err


def test_hasty_elections_of_a_file_are_refused_too(started):
    answer, policy, _, _ = started(leaderElection={"retryPeriod": "9s"})
    assert (answer.code, policy) == (2, None)


def test_the_policy_is_followed(started, tmp_path):
    _, _, options, _ = started("--leader-elect-resource-name", "mine", "--decisions", "d.jsonl", "--last-good", "kept.yaml")
    following = options.following
    assert (following.file, following.configmap) == (str(tmp_path / "scheduler.yaml"), None)
    assert (following.last_good, following.instead) == ("kept.yaml", {"resource_name": "mine"})
    assert (options.decisions, options.shadow, options.report) == ("d.jsonl", False, "")


def test_a_configmap_is_followed(stowplan, monkeypatch):
    found = []
    monkeypatch.setattr("stowplan.edge.logs.set_up", lambda *_: None)
    monkeypatch.setattr(live, "run", lambda policy, options: found.append((policy, options)) or 0)
    assert stowplan("run", "--policy-configmap", "a/b/c", "--shadow", "--report", "r.json").code == 0
    ((policy, options),) = found
    assert policy is None
    reference = options.following.configmap
    assert (reference.namespace, reference.name, reference.key) == ("a", "b", "c")
    assert (options.shadow, options.report) == (True, "r.json")


def test_the_defaults_are_nothing_to_follow(stowplan, monkeypatch):
    found = []
    monkeypatch.setattr(live, "run", lambda policy, options: found.append((policy, options)) or 0)
    monkeypatch.setattr("stowplan.edge.logs.set_up", lambda *_: None)
    assert stowplan("run").code == 0
    assert found[0][1].following is None


@pytest.mark.parametrize("name", ["a b", "\N{LATIN SMALL LETTER A WITH DIAERESIS}", "x/../../pods", "A"])
def test_a_name_that_no_lease_can_have(stowplan, name):
    for option in ("--leader-elect-resource-name", "--leader-elect-resource-namespace"):
        found = stowplan("run", option, name)
        assert found.code == 2
        assert "a lowercase RFC 1123 subdomain" in found.err


def test_a_bad_file_is_refused_unless_there_is_a_last_good_one(stowplan, monkeypatch, tmp_path):
    found, path = [], tmp_path / "bad.yaml"
    path.write_text("profiles: [")
    monkeypatch.setattr(live, "run", lambda policy, options: found.append((policy, options)) or 0)
    monkeypatch.setattr("stowplan.edge.logs.set_up", lambda *_: None)
    assert stowplan("run", "--policy", path).code == 3
    assert stowplan("run", "--policy", path, "--last-good", tmp_path / "kept").code == 0
    assert found[0][0] is None


@pytest.mark.parametrize(
    "flags",
    [
        ["--policy", "a", "--policy-configmap", "a/b"],
        ["--policy-configmap", "a"],
        ["--report", "r.json"],
    ],
)
def test_flags_that_do_not_go_together(stowplan, flags):
    assert stowplan("run", *flags).code == 2


def test_plugins_of_other_projects_are_refused(started):
    plugins = {"filter": {"enabled": [{"name": "Coscheduling"}]}}
    answer, policy, _, _ = started(profiles=[{"schedulerName": "a", "plugins": plugins}])
    assert (answer.code, policy) == (3, None)
    assert "Coscheduling" in answer.err
    assert "scheduler.yaml:1:" in answer.err


def test_a_missing_file(stowplan, tmp_path):
    answer = stowplan("run", "--config", tmp_path / "none.yaml")
    assert answer.code == 3
    assert "none.yaml" in answer.err


@pytest.fixture
def reached(stowplan, monkeypatch):
    """Calls `stowplan run`; gives the answer, and whether the scheduler would have started."""
    found = []
    monkeypatch.setattr("stowplan.edge.logs.set_up", lambda *_: None)
    monkeypatch.setattr(live, "run", lambda *_: found.append(1) or 0)

    def call(*flags):
        found.clear()
        return stowplan("run", *flags), bool(found)

    return call


OUTPUTS = (("--decisions",), ("--last-good",), ("--shadow", "--report"))


@pytest.mark.parametrize("flags", OUTPUTS, ids=lambda flags: flags[-1])
def test_files_that_cannot_be_written_are_told_at_the_start(reached, tmp_path, flags):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "none" / "file", tmp_path, tmp_path / "file" / "below", "/proc/none"):
        answer, begun = reached(*flags, str(path))
        assert (answer.code, begun) == (3, False)
        (line,) = answer.err.splitlines()
        assert line.startswith(f"Error: {flags[-1]} {path} cannot be written: ")


@pytest.mark.parametrize("flags", OUTPUTS, ids=lambda flags: flags[-1])
def test_files_that_can_be_written(reached, tmp_path, flags):
    there = tmp_path / "there"
    there.write_text("content")
    assert reached(*flags, str(there))[1]
    assert reached(*flags, str(tmp_path / "new"))[1]
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    assert there.read_text() == "content"


def test_pipes_are_for_records_and_reports(reached, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert reached("--decisions", str(pipe))[1]
    assert reached("--shadow", "--report", str(pipe))[1]
    answer, begun = reached("--last-good", str(pipe))
    assert (answer.code, begun, "this is no file" in answer.err) == (3, False, True)


def test_files_of_their_own(reached, tmp_path):
    path, same = tmp_path / "file", f"{tmp_path}/./file"
    answer, begun = reached("--shadow", "--report", str(path), "--decisions", same)
    assert (answer.code, begun, "--report and --decisions need files of their own" in answer.err) == (2, False, True)


def test_a_policy_with_many_errors_is_not_endless(reached, tmp_path):
    path = tmp_path / "policy.yaml"
    profiles = "".join(
        f"- schedulerName: s{number}\n  plugins: {{filter: {{enabled: [{{name: Nope}}]}}}}\n" for number in range(3000)
    )
    path.write_text(f"apiVersion: {HEAD['apiVersion']}\nkind: {HEAD['kind']}\nprofiles:\n{profiles}")
    answer, begun = reached("--policy", str(path))
    assert (answer.code, begun) == (3, False)
    lines = answer.err.splitlines()
    assert len(lines) < 150
    assert sum("error[" in line for line in lines) == 20
    assert lines[-1].endswith(" more; `stowplan validate` shows them")
