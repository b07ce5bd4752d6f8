import json

import pytest
import yaml

from stowplan.cli.main import run
from stowplan.edge.convert import convert
from stowplan.policy.compile import examine, load
from stowplan.policy.releases import plugins_of
from stowplan.profile.versions import SERVED
from stowplan.text import Source

GROUP = "kubescheduler.config.k8s.io"
HEAD = f"apiVersion: {GROUP}/v1beta1\nkind: KubeSchedulerConfiguration\n"


def converted(text, target="v1"):
    found = convert(Source("f.yaml", text), target)
    assert found.errors == ()
    return found


def told(text, target="v1"):
    return [(change.line, change.text, change.lost) for change in converted(text, target).told]


def profile(text):
    (one,) = load(yaml.safe_load(converted(text).text)).profiles.values()
    return one


def test_comments_order_and_quotes_stay():
    text = f"""# ours
apiVersion: {GROUP}/v1beta3  # soon v1
kind: KubeSchedulerConfiguration
profiles:
  # the only one
  - schedulerName: "packed"   # quoted
    plugins:
      filter:
        disabled:
          - name: 'NodePorts'
    # nothing else
"""
    expected = text.replace("v1beta3  #", "v1       #")
    assert converted(text).text == expected
    assert converted(expected).text == expected
    assert told(expected) == []


@pytest.mark.parametrize("version", [version for version in SERVED if not version.endswith("/v1")])
def test_every_version_ends_in_v1(version):
    text = f"apiVersion: {version}\nkind: KubeSchedulerConfiguration\nleaderElection: {{leaderElect: false}}\n"
    made = yaml.safe_load(converted(text).text)
    assert (made["apiVersion"], made["kind"]) == (f"{GROUP}/v1", "KubeSchedulerConfiguration")
    assert load(made).configuration.leader_election.leader_elect is False


def test_old_default_weights_are_kept():
    old = profile(f"apiVersion: {GROUP}/v1beta2\nkind: KubeSchedulerConfiguration\n")
    assert {name: old.weights[name] for name in ("TaintToleration", "NodeAffinity", "InterPodAffinity", "PodTopologySpread")} == {
        "TaintToleration": 1,
        "NodeAffinity": 1,
        "InterPodAffinity": 1,
        "PodTopologySpread": 2,
    }
    explicit = HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeAffinity, weight: 7}]}}}]\n"
    assert profile(explicit).weights["NodeAffinity"] == 7
    newer = profile(f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration\n")
    assert newer.weights["TaintToleration"] == 3


def test_scores_by_resources_become_a_strategy():
    text = (
        HEAD
        + """profiles:
- plugins:
    score:
      disabled: [{name: NodeResourcesLeastAllocated}]
      enabled: [{name: RequestedToCapacityRatio, weight: 4}, {name: NodeResourcesMostAllocated, weight: 2}]
    preScore:
      enabled: [{name: RequestedToCapacityRatio}]
  pluginConfig:
  - name: RequestedToCapacityRatio
    args:
      shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]
      resources: [{name: cpu, weight: 3}]
  - name: NodeResourcesMostAllocated
    args: {resources: [{name: memory, weight: 1}]}
"""
    )
    found = profile(text)
    strategy = found.args["NodeResourcesFit"].scoring_strategy
    assert found.weights["NodeResourcesFit"] == 4
    assert (strategy.type, [resource.name for resource in strategy.resources]) == ("RequestedToCapacityRatio", ["cpu"])
    assert [point.score for point in strategy.requested_to_capacity_ratio] == [0, 10]
    assert {change for _, change, lost in told(text) if lost} == {
        "NodeResourcesMostAllocated is left out: NodeResourcesFit has one strategy",
        "args of NodeResourcesMostAllocated are left out",
    }


def test_a_single_profile_on_the_top_level():
    text = """apiVersion: kubescheduler.config.k8s.io/v1alpha1
kind: KubeSchedulerConfiguration
schedulerName: one
hardPodAffinitySymmetricWeight: 7
bindTimeoutSeconds: 30
disablePreemption: true
algorithmSource: {provider: ClusterAutoscalerProvider}
leaderElection: {lockObjectName: a, lockObjectNamespace: b}
"""
    policy = load(yaml.safe_load(converted(text).text))
    assert list(policy.profiles) == ["one"]
    found = policy.profiles["one"]
    assert found.args["InterPodAffinity"].hard_pod_affinity_weight == 7
    assert found.args["VolumeBinding"].bind_timeout_seconds == 30
    assert found.args["NodeResourcesFit"].scoring_strategy.type == "MostAllocated"
    assert "DefaultPreemption" not in found.points["postFilter"]
    election = policy.configuration.leader_election
    assert (election.resource_name, election.resource_namespace) == ("a", "b")


def test_what_is_gone_is_told_with_its_line():
    text = HEAD + "metricsBindAddress: ''\nprofiles:\n- plugins:\n    filter:\n      enabled:\n      - name: NodeLabel\n"
    changes = told(text)
    assert (3, "metricsBindAddress is gone: use --bind-address and --secure-port", False) in changes
    assert (8, "NodeLabel is gone: addedAffinity of NodeAffinity comes close", True) in changes
    assert profile(text).points["filter"]


def test_selector_spread_and_volume_limits():
    head = f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration\n"
    score, limits = "score: {enabled: [{name: SelectorSpread, weight: 5}]}", "filter: {disabled: [{name: EBSLimits}]}"
    text = f"{head}profiles:\n- plugins:\n    {score}\n    {limits}\n"
    found = profile(text)
    assert found.weights["PodTopologySpread"] == 5
    assert {change for _, change, _ in told(text)} >= {
        "SelectorSpread becomes PodTopologySpread",
        "EBSLimits is gone: NodeVolumeLimits does its work",
    }


def test_a_policy():
    text = """{"kind": "Policy", "apiVersion": "v1",
 "predicates": [{"name": "PodFitsResources"}, {"name": "NoDiskConflict"},
  {"name": "Own", "argument": {"labelsPresence": {"labels": ["a"]}}}],
 "priorities": [{"name": "MostRequestedPriority", "weight": 3}, {"name": "LeastRequestedPriority", "weight": 1},
  {"name": "EqualPriority", "weight": 1},
  {"name": "EvenPodsSpreadPriority", "weight": 2}, {"name": "SelectorSpreadPriority", "weight": 1}],
 "hardPodAffinitySymmetricWeight": 4, "alwaysCheckAllPredicates": true,
 "extenders": [{"urlPrefix": "http://a", "enableHttps": true, "httpTimeout": 100000000, "filterVerb": "f"}]}"""
    made = json.loads(converted(text).text)
    policy = load(made)
    (found,) = policy.profiles.values()
    assert set(found.points["filter"]) == {"NodeResourcesFit", "VolumeRestrictions", "TaintToleration", "NodeUnschedulable"}
    assert found.weights == {"NodeResourcesFit": 3, "PodTopologySpread": 3}
    assert found.args["NodeResourcesFit"].scoring_strategy.type == "MostAllocated"
    assert found.args["InterPodAffinity"].hard_pod_affinity_weight == 4
    assert found.points["bind"] == ("DefaultBinder",)
    (extender,) = policy.configuration.extenders
    assert extender.enable_https
    assert extender.http_timeout.total_seconds() == 0.1
    assert [change for _, change, lost in told(text) if lost] == [
        "predicate Own is left out: addedAffinity of NodeAffinity comes close",
        "priority LeastRequestedPriority is left out: NodeResourcesFit has one strategy",
        "priority EqualPriority is left out: it did nothing",
        "nothing does the same: filtering stops at the first refusal",
    ]


def test_a_policy_without_lists_has_the_default_ones():
    text = "kind: Policy\napiVersion: v1\nextenders: []\n"
    found = profile(text)
    assert {"NodeResourcesFit", "InterPodAffinity", "VolumeBinding", "PodTopologySpread"} <= set(found.points["filter"])
    assert found.weights["PodTopologySpread"] == 2
    assert found.weights["TaintToleration"] == 1
    empty = profile("kind: Policy\napiVersion: v1\npredicates: []\npriorities: []\n")
    assert set(empty.points["filter"]) == {"TaintToleration", "NodeUnschedulable"}
    assert empty.points["score"] == ()


def test_wrapped_configurations_are_converted_where_they_stand():
    old = f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration\n"
    inner = "".join(f"    {line}\n" for line in old.splitlines())
    other = "# a\nkind: Namespace\napiVersion: v1   # odd   spacing\n"
    text = f"{other}---\nkind: ConfigMap\napiVersion: v1\ndata:\n  a: |\n{inner}---\n{old}"
    new = converted(text).text
    assert new == text.replace("v1beta3", "v1")


def test_rules_move_into_a_scheduler_policy():
    text = f"""apiVersion: {GROUP}/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: a
  pluginConfig:
  - name: stowplan.io/Rules
    args:
      rules:   # ours
      - name: a
        filter: "true"
"""
    made = yaml.safe_load(converted(text, "policy").text)
    assert (made["apiVersion"], made["kind"]) == ("stowplan.io/v1alpha1", "SchedulerPolicy")
    assert made["profiles"] == [{"schedulerName": "a", "rules": [{"name": "a", "filter": "true"}]}]
    assert "# ours" in converted(text, "policy").text


@pytest.mark.parametrize("minor", [25, 27])
def test_reading_an_old_file_is_compiling_what_it_converts_to(minor):
    text = HEAD + "profiles: [{plugins: {score: {enabled: [{name: NodeResourcesMostAllocated, weight: 3}]}}}]\n"
    plugins = plugins_of(minor)
    read = examine(Source("f.yaml", text), plugins, compat=False)
    (expected,) = examine(yaml.safe_load(converted(text).text), plugins).profiles
    (found,) = read.profiles
    assert (found.points, found.weights, found.args) == (expected.points, expected.weights, expected.args)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.yaml").write_text(f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 2\n")
    assert run(["convert", "old.yaml"]) == 0
    assert capsys.readouterr().out == f"apiVersion: {GROUP}/v1\nkind: KubeSchedulerConfiguration\nparallelism: 2\n"
    assert run(["convert", "--write", "old.yaml"]) == 0
    assert "v1beta3" not in (tmp_path / "old.yaml").read_text()
    (tmp_path / "bad.yaml").write_text(f"apiVersion: {GROUP}/v1beta3\nkind: KubeSchedulerConfiguration\nparallelism: 0\n")
    assert run(["convert", "bad.yaml"]) == 1
    assert "must be" not in capsys.readouterr().out
    (tmp_path / "broken.yaml").write_text("a: [\n")
    assert run(["convert", "broken.yaml"]) == 1
    assert run(["convert", "missing.yaml"]) == 3
    assert run(["convert", "--write", "-"]) == 2


def test_mappings_of_one_entry_keep_their_braces():
    score = "{disabled: [{name: ImageLocality}], enabled: [{'name': X}, {name: Y, weight: 2}]}"
    text = f"{HEAD}profiles:\n- plugins:\n    score: {score}\n"
    made = converted(text).text
    assert "disabled: [{name: ImageLocality}], enabled: [{'name': X}, {name: Y, weight: 2}]" in made


OLD = """\
apiVersion: kubescheduler.config.k8s.io/v1beta3
kind: KubeSchedulerConfiguration  # {}
"""
NEW = OLD.replace("v1beta3", "v1")
DEPLOYMENT = "kind: Deployment\nspec: {{ .Values.spec }}: [\nimagePullPolicy: Always  # NetworkPolicy\n"


@pytest.mark.parametrize("broken", ["kind: KubeSchedulerConfiguration\nprofiles: [\n", "{KubeSchedulerConfiguration\n"])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_documents_that_cannot_be_read_stay_and_the_others_are_converted(broken, place):
    old, new = [OLD.format(1), OLD.format(2)], [NEW.format(1), NEW.format(2)]
    for texts in (old, new):
        texts.insert(place, broken)
    found = convert(Source("all.yaml", "---\n".join(old)), "v1")
    assert found.text == "---\n".join(new)
    assert found.rest
    (error,) = found.errors
    first = sum(text.count("\n") + 1 for text in old[:place]) + 1
    assert first <= error.span.line <= first + 2


def test_documents_of_another_kind_are_not_looked_at():
    found = convert(Source("all.yaml", f"{DEPLOYMENT}---\n{OLD}---\n{DEPLOYMENT}"), "v1")
    assert (found.text, found.errors) == (f"{DEPLOYMENT}---\n{NEW}---\n{DEPLOYMENT}", ())


def test_a_document_with_nothing_that_can_be_read():
    found = convert(Source("a.yaml", "profiles: [\n"), "v1")
    assert (found.text, found.rest, len(found.errors)) == ("profiles: [\n", False, 1)


def test_the_command_says_what_it_leaves(tmp_path, capsys):
    path = tmp_path / "all.yaml"
    path.write_text(f"{OLD}---\nkind: KubeSchedulerConfiguration\nprofiles: [\n")
    assert run(["convert", "--write", str(path)]) == 1
    assert path.read_text() == f"{NEW}---\nkind: KubeSchedulerConfiguration\nprofiles: [\n"
    told = capsys.readouterr().err
    assert "all.yaml:5:12: error[STW103]" in told
    assert "all.yaml: what cannot be read stays as it is" in told
