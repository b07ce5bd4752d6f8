import pytest

from stowplan.edge.configurations import read_policy
from stowplan.policy.compile import PolicyError
from stowplan.text import Code

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
FOREIGN = HEAD + "profiles:\n- plugins:\n    score:\n      enabled: [{name: TargetLoadPacking}]\n"


def of(folder, text):
    path = folder / "f.yaml"
    path.write_text(text)
    return read_policy(str(path))


def codes(policy):
    return [warning.code for warning in policy.warnings]


def test_plugins_of_other_projects_are_left_out(tmp_path):
    policy = of(tmp_path, FOREIGN)
    assert "TargetLoadPacking" not in policy.profiles["default-scheduler"].points["score"]
    assert codes(policy) == [Code.FOREIGN_PLUGIN]


def test_older_versions_are_read(tmp_path):
    policy = of(tmp_path, HEAD.replace("/v1", "/v1beta2"))
    assert policy.profiles["default-scheduler"].weights["TaintToleration"] == 1
    assert Code.OLD_VERSION in codes(policy)


def test_the_first_configuration_is_used_and_the_others_are_named(tmp_path):
    text = f"kind: Namespace\napiVersion: v1\n---\n{HEAD}parallelism: 3\n---\n{HEAD}parallelism: 4\n"
    policy = of(tmp_path, text)
    assert policy.configuration.parallelism == 3
    assert [(w.code, w.span.line) for w in policy.warnings if "not used" in w.message] == [(Code.WRAPPED, 9)]
    wrapped = of(
        tmp_path, "kind: ConfigMap\napiVersion: v1\ndata:\n  a: |\n" + "".join(f"    {line}\n" for line in FOREIGN.splitlines())
    )
    assert codes(wrapped) == [Code.FOREIGN_PLUGIN]
    assert wrapped.warnings[0].span.line == 10


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (HEAD + "parallelism: 0\n", Code.INVALID),
        (HEAD + "a: [\n", Code.SYNTAX),
        ("kind: Deployment\napiVersion: apps/v1\n", Code.UNKNOWN_KIND),
        ("", Code.UNREADABLE),
        ("# nothing\n", Code.NOT_A_MAPPING),
        (HEAD + "{{ x }}\n", Code.TEMPLATE),
    ],
)
def test_what_is_wrong_is_refused(tmp_path, text, code):
    with pytest.raises(PolicyError) as raised:
        of(tmp_path, text)
    assert code in {finding.code for finding in raised.value.diagnostics if finding.is_error}


def test_what_cannot_be_read_is_refused(tmp_path):
    for path in (tmp_path / "missing.yaml", tmp_path):
        with pytest.raises(PolicyError) as raised:
            read_policy(str(path))
        assert [finding.code for finding in raised.value.diagnostics] == [Code.UNREADABLE]


def test_a_plugin_behind_a_feature_gate_is_left_out_where_it_runs(tmp_path):
    gated = HEAD + "profiles:\n- plugins:\n    permit:\n      enabled: [{name: GangScheduling}]\n"
    policy = of(tmp_path, gated)
    assert codes(policy) == [Code.FOREIGN_PLUGIN]
    assert policy.profiles["default-scheduler"].points["permit"] == ()
    with pytest.raises(PolicyError) as raised:
        of(tmp_path, gated.replace("permit", "filter"))
    assert [finding.code for finding in raised.value.diagnostics if finding.is_error] == [Code.WRONG_POINT]


def test_a_key_twice_is_refused_as_by_kube_scheduler(tmp_path):
    with pytest.raises(PolicyError) as raised:
        of(tmp_path, HEAD + "parallelism: 3\nparallelism: 4\n")
    assert [finding.code for finding in raised.value.diagnostics] == [Code.DUPLICATE_KEY]


def test_a_name_that_is_ignored_is_told(tmp_path):
    text = HEAD + "profiles:\n- plugins:\n    score:\n      disabled: [{name: NodeResourceFit}]\n"
    text += "  pluginConfig:\n  - name: NodeResourceFit\n"
    assert codes(of(tmp_path, text)) == [Code.MISSPELT, Code.MISSPELT]
