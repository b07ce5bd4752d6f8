import gzip
import json
from pathlib import Path

import pytest
import yaml

from stowplan.plugins.arguments import ARGS, NodeResourcesFitArgs
from stowplan.policy.compile import PolicyError, compile_policy, load
from stowplan.profile import read
from stowplan.text import Code, Severity, Source

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
GOLDENS = Path(__file__).parents[2] / "goldens" / "configs.jsonl.gz"


def goldens():
    with gzip.open(GOLDENS, "rt") as lines:
        for line in lines:
            row = json.loads(line)
            yield row["case"]["name"], row["case"].get("config"), row["golden"]


def of(body):
    return load(Source("f.yaml", HEAD + body))


def errors(body):
    """Errors as `line: path: message`, lines counted from the first after the head."""
    with pytest.raises(PolicyError) as raised:
        of(body)
    return [f"{d.span.line - 2}: {d.path}: {d.message}" for d in raised.value.diagnostics if d.is_error]


@pytest.mark.parametrize("form", ["document", "json", "yaml"])
def test_kube_scheduler_accepts_the_same_and_runs_the_same(form):
    compared = {"accepted": 0, "refused": 0}
    for name, config, golden in goldens():
        text = {"document": lambda c: c, "json": json.dumps, "yaml": yaml.safe_dump}[form](config)
        source = text if form == "document" else Source(name, text)
        if "error" in golden:
            compared["refused"] += 1
            with pytest.raises(PolicyError) as raised:
                load(source)
            assert all(d.span for d in raised.value.diagnostics) or form == "document"
            continue
        compared["accepted"] += 1
        found = {
            profile.scheduler_name: {
                **{
                    point: list(profile.points[point]) for point in golden["profiles"][profile.scheduler_name] if point != "weights"
                },
                "weights": dict(profile.weights),
            }
            for profile in load(source).profiles.values()
        }
        assert found == golden["profiles"], name
    assert compared == {"accepted": 55, "refused": 25}


def test_texts_are_those_of_kube_scheduler():
    """A single error of the configuration proper has the path and the words of upstream, letter for letter."""
    seen = 0
    for name, config, golden in goldens():
        error = golden.get("error", "")
        if not error.startswith(("parallelism", "profiles[0].pluginConfig", "percentageOfNodesToScore", "profiles[0].percentage")):
            continue
        seen += 1
        with pytest.raises(PolicyError) as raised:
            load(config)
        assert [f"{d.path}: {d.message}" for d in raised.value.diagnostics if d.is_error] == [error], name
    assert seen > 5


def test_the_default_policy():
    policy = load(None)
    profile = policy.profiles["default-scheduler"]
    assert policy.warnings == ()
    assert profile.args["NodeResourcesFit"] == NodeResourcesFitArgs()
    assert set(profile.plugins) == {name for names in profile.points.values() for name in names}
    assert all(name in profile.args for name in profile.plugins)
    assert hash(tuple(profile.args[name] for name in ARGS))


def test_a_configuration_can_be_compiled_by_itself():
    configuration, _ = read(None)
    assert compile_policy(configuration).profiles.keys() == {"default-scheduler"}
    broken, _ = read(Source("f.yaml", HEAD + "profiles: [{plugins: {bind: {disabled: [{name: '*'}]}}}]\n"))
    with pytest.raises(PolicyError, match="at least one bind plugin is needed"):
        compile_policy(broken)


def test_the_error_reads_like_a_report():
    with pytest.raises(PolicyError) as raised:
        of("profiles:\n- plugins:\n    score: {enabled: [{name: NodeResourceFit}]}\n")
    assert str(raised.value) == (
        'f.yaml:5:30: error[STW211]: profiles[0].plugins.score.enabled[0].name: ScorePlugin "NodeResourceFit" does not exist\n'
        "  5 |     score: {enabled: [{name: NodeResourceFit}]}\n"
        "    |                              ^^^^^^^^^^^^^^^\n"
        '  note: did you mean "NodeResourcesFit"?'
    )


def test_findings_of_all_stages_come_together_in_the_order_of_the_file():
    found = errors(
        "parallelism: 0\n"
        "profiles:\n"
        "- pluginConfig:\n"
        "  - {name: InterPodAffinity, args: {hardPodAffinityWeight: 101}}\n"
        "  plugins: {score: {enabled: [{name: Nobody}]}}\n"
    )
    assert [error.partition(":")[0] for error in found] == ["1", "4", "5"]
    assert len(errors("nonsense: 1\nprofiles: [{plugins: {score: {enabled: [{name: Nobody}]}}}]\n")) == 2


def test_what_could_not_be_read_is_complained_about_once():
    found = errors("profiles:\n- plugins:\n    score:\n      enabled:\n      - NodeResourcesFit\n")
    assert found == ['5: profiles[0].plugins.score.enabled[0]: expected a mapping, got the string "NodeResourcesFit"']


def test_bad_fit_args_go_unnoticed_while_the_plugin_does_not_run():
    bad = "  pluginConfig: [{name: NodeResourcesFit, args: {ignoredResources: ['a b']}}]\n"
    assert errors(f"profiles:\n- plugins: {{}}\n{bad}") != []
    policy = of(f"profiles:\n- plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}\n{bad}")
    assert [(d.code, d.severity) for d in policy.warnings] == [(Code.INVALID, Severity.WARNING)]


def test_args_of_unknown_plugins_are_kept_with_a_warning():
    policy = of("profiles:\n- pluginConfig:\n  - name: example.com/Mine\n    args: {a: [1]}\n  - {name: NodeName, args: {x: 1}}\n")
    assert policy.profiles["default-scheduler"].args["example.com/Mine"] == {"a": [1]}
    assert [(d.code, d.severity, d.span.line - 2) for d in policy.warnings] == [
        (Code.UNUSED_ARGS, Severity.WARNING, 3),
        (Code.UNUSED_ARGS, Severity.WARNING, 5),
    ]


EXTENDER = (
    "extenders:\n- urlPrefix: http://127.0.0.1:1\n"
    "  managedResources: [{name: a.com/x, ignoredByScheduler: true}, {name: a.com/y}]\n"
)


def test_extenders_are_left_out_with_a_warning_and_their_resources_ignored():
    policy = of(f"{EXTENDER}profiles:\n- pluginConfig: [{{name: NodeResourcesFit, args: {{ignoredResources: [b.com/z]}}}}]\n")
    assert policy.profiles["default-scheduler"].args["NodeResourcesFit"] == NodeResourcesFitArgs(ignored_resources=("a.com/x",))
    assert [(d.code, d.severity, d.span.line - 2) for d in policy.warnings] == [(Code.EXTENDER, Severity.WARNING, 2)]


def test_ignored_resources_need_a_fit_plugin_to_ignore_them():
    without = f"{EXTENDER}profiles:\n- plugins: {{multiPoint: {{disabled: [{{name: NodeResourcesFit}}]}}}}\n"
    assert errors(without) == [
        "5: profiles[0].pluginConfig: couldn't build extenders: can't find NodeResourcesFitArgs in plugin config"
    ]
    assert of(f"{without}  pluginConfig: [{{name: NodeResourcesFit, args: {{}}}}]\n").profiles


def test_all_profiles_share_one_queue_order():
    two = "profiles:\n- schedulerName: a\n- schedulerName: b\n  pluginConfig: [{name: PrioritySort, args: {x: 1}}]\n"
    assert errors(two) == ['4: profiles[1].pluginConfig: different queue sort plugin args for profile "b"']


def test_profiles_are_independent():
    policy = of("profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {score: {disabled: [{name: '*'}]}}\n")
    assert list(policy.profiles) == ["a", "b"]
    assert policy.profiles["a"].points["score"]
    assert policy.profiles["b"].points["score"] == ()
