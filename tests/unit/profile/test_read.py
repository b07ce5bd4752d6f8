from datetime import timedelta

import pytest

from stowplan.profile import POINTS, Configuration, Extender, PluginEntry, PluginSet, Profile, read
from stowplan.text import Code, Severity, Source, has_errors

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def of(body):
    return read(Source("f.yaml", HEAD + body))


def errors(body):
    """Errors as `line: path: message`, lines counted from the first after the head."""
    _, diagnostics = of(body)
    return [f"{d.span.line - 2}: {d.path}: {d.message}" for d in diagnostics if d.is_error]


def test_nothing_written_is_the_default_configuration():
    configuration, diagnostics = read(None)
    assert diagnostics == []
    assert configuration == of("")[0]
    assert configuration.profiles == (Profile("default-scheduler"),)
    assert (configuration.parallelism, configuration.percentage_of_nodes_to_score) == (16, 0)
    assert (configuration.pod_initial_backoff_seconds, configuration.pod_max_backoff_seconds) == (1, 10)
    assert (configuration.client_connection.qps, configuration.client_connection.burst) == (50, 100)
    assert configuration.client_connection.content_type == "application/vnd.kubernetes.protobuf"
    election = configuration.leader_election
    assert (election.leader_elect, election.resource_lock, election.resource_name) == (True, "leases", "kube-scheduler")
    assert [d.total_seconds() for d in (election.lease_duration, election.renew_deadline, election.retry_period)] == [15, 10, 2]
    assert (configuration.enable_profiling, configuration.enable_contention_profiling) == (True, True)


def test_a_parsed_document_is_as_good_as_its_text():
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": "a", "plugins": {"score": {"enabled": [{"name": "X", "weight": 2}]}}}],
    }
    configuration, diagnostics = read(document)
    assert diagnostics == []
    assert configuration == of("profiles: [{schedulerName: a, plugins: {score: {enabled: [{name: X, weight: 2}]}}}]\n")[0]
    assert configuration.profiles[0].plugins.score == PluginSet(enabled=(PluginEntry("X", 2),))
    _, diagnostics = read(document | {"parallelism": 0})
    assert [(d.code, d.span, d.path) for d in diagnostics] == [(Code.INVALID, None, "parallelism")]


def test_every_extension_point_has_its_key():
    assert len(POINTS) == 15
    body = "".join(f"    {point}: {{disabled: [{{name: '*'}}]}}\n" for point in (*POINTS, "multiPoint"))
    configuration, diagnostics = of(f"profiles:\n- plugins:\n{body}")
    assert diagnostics == []
    assert all(plugins.disabled for _, plugins in configuration.profiles[0].plugins.items())


def test_zero_means_the_default_where_it_does_upstream():
    configuration, diagnostics = of(
        "clientConnection: {qps: 0, burst: 0, contentType: ''}\n"
        "leaderElection: {leaseDuration: 0s, renewDeadline: 0s, retryPeriod: 0s, resourceName: '', resourceLock: ''}\n"
        "extenders: [{urlPrefix: x, httpTimeout: 0s}]\n"
    )
    assert diagnostics == []
    assert configuration.client_connection == Configuration().client_connection
    assert configuration.leader_election == Configuration().leader_election
    assert configuration.extenders == (Extender(url_prefix="x", http_timeout=timedelta(seconds=5)),)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", True),
        ("enableProfiling: false\n", False),
        ("enableProfiling: false\nenableContentionProfiling: true\n", True),
        ("enableContentionProfiling: false\n", False),
    ],
)
def test_contention_profiling_follows_profiling(body, expected):
    assert of(body)[0].enable_contention_profiling is expected


@pytest.mark.parametrize("body", ["profiles:\n", "profiles: []\n", "profiles: [{}]\n", "profiles: [~]\n"])
def test_only_a_single_profile_is_named_by_default(body):
    configuration, diagnostics = of(body)
    assert diagnostics == []
    assert [p.scheduler_name for p in configuration.profiles] == ["default-scheduler"]


INVALID = [
    ("parallelism: 0\n", ["1: parallelism: Invalid value: 0: should be an integer value greater than zero"]),
    ("percentageOfNodesToScore: 101\n", ["1: percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]"]),
    ("podInitialBackoffSeconds: 0\n", ["1: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"]),
    (
        "podMaxBackoffSeconds: 0\n",
        ["1: podMaxBackoffSeconds: Invalid value: 0: must be greater than or equal to PodInitialBackoffSeconds"],
    ),
    ("podInitialBackoffSeconds: 10\n", []),
    ("clientConnection: {burst: -1, qps: -1}\n", ["1: clientConnection.burst: Invalid value: -1: must be non-negative"]),
    (
        "leaderElection:\n  retryPeriod: -1s\n  resourceLock: endpoints\n",
        [
            '2: leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
            '3: leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ],
    ),
    (
        "leaderElection:\n  leaseDuration: 10s\n",
        ['2: leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`'],
    ),
    ("leaderElection: {leaderElect: false, retryPeriod: -1s, resourceLock: x, leaseDuration: 1s}\n", []),
    ("profiles:\n- schedulerName: ''\n", ["2: profiles[0].schedulerName: Required value"]),
    ("profiles:\n- schedulerName: a\n- {}\n", ["3: profiles[1].schedulerName: Required value"]),
    ("profiles:\n- schedulerName: a\n- schedulerName: a\n", ['3: profiles[1].schedulerName: Duplicate value: "a"']),
    (
        "profiles:\n- percentageOfNodesToScore: -1\n",
        ["2: profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]"],
    ),
    (
        "profiles:\n- pluginConfig:\n  - {name: A, args: {}}\n  - {name: A, args: {}}\n",
        ['4: profiles[0].pluginConfig[1]: Duplicate value: "A"'],
    ),
    (
        "profiles:\n- schedulerName: a\n- schedulerName: b\n  plugins: {queueSort: {enabled: [{name: Q}]}}\n",
        ['4: profiles[1].plugins.queueSort: Invalid value: {"enabled":["Q"],"disabled":[]}: must be the same for all profiles'],
    ),
    (
        "profiles:\n- plugins: {queueSort: {enabled: [{name: Q}, {name: R}]}}\n",
        ["2: profiles[0].plugins.queueSort.enabled: Invalid value: 2: only one queue sort plugin can be enabled"],
    ),
    (
        "extenders:\n- prioritizeVerb: p\n",
        ["2: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it"],
    ),
    (
        "extenders:\n- managedResources:\n  - name: cpu\n  - name: a.com/x\n- managedResources:\n  - name: a.com/x\n",
        [
            '3: extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
            '6: extenders[1].managedResources[0].name: Invalid value: "a.com/x": duplicate extender managed resource name',
        ],
    ),
    (
        "extenders:\n- bindVerb: b\n- bindVerb: b\n",
        ['1: extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind'],
    ),
]


@pytest.mark.parametrize(("body", "expected"), INVALID)
def test_validation_says_what_kube_scheduler_says(body, expected):
    assert errors(body) == expected


def test_an_extender_name_must_be_qualified():
    assert "name part must consist of" in errors("extenders: [{managedResources: [{name: 'bad name/x y'}]}]\n")[-1]


def test_all_mistakes_are_found_at_once():
    assert len(errors("parallelism: 0\npercentageOfNodesToScore: -1\npodInitialBackoffSeconds: 5\npodMaxBackoffSeconds: 2\n")) == 3
    assert len(errors("parallelism: x\nkubeconfig: y\nprofiles: [{plugin: {}}]\n")) == 3


OTHERS = [
    ("a: 1\n", Code.NO_KIND, (1, 1), None),
    ("kind: KubeSchedulerConfiguration\n", Code.NO_KIND, (1, 1), None),
    ("- a\n", Code.NOT_A_MAPPING, (1, 1), None),
    ("", Code.NOT_A_MAPPING, (1, 1), None),
    (HEAD.replace("/v1", "/v1beta2"), Code.UNKNOWN_KIND, (1, 13), "last served by kube-scheduler 1.27"),
    (HEAD.replace("/v1", "/v2"), Code.UNKNOWN_KIND, (1, 13), "write kubescheduler.config.k8s.io/v1"),
    (HEAD.replace("KubeScheduler", "KubeShceduler"), Code.UNKNOWN_KIND, (2, 7), 'did you mean "KubeSchedulerConfiguration"?'),
    ("apiVersion: v1\nkind: Policy\n", Code.UNKNOWN_KIND, (2, 7), "up to kube-scheduler 1.22"),
    ("apiVersion: stowplan.io/v1\nkind: SchedulerPolicy\n", Code.UNKNOWN_KIND, (1, 13), "write stowplan.io/v1alpha1"),
]


@pytest.mark.parametrize(("text", "code", "where", "note"), OTHERS)
def test_other_objects_are_refused_with_a_remedy(text, code, where, note):
    configuration, diagnostics = read(Source("f.yaml", text))
    assert configuration is None
    assert {(d.code, (d.span.line, d.span.column)) for d in diagnostics} == {(code, where)}
    assert note is None or note in diagnostics[0].notes[0]


def test_broken_yaml_is_one_error():
    configuration, diagnostics = of("profiles: [\n")
    assert configuration is None
    assert [d.code for d in diagnostics] == [Code.SYNTAX]


POLICY = "apiVersion: stowplan.io/v1alpha1\nkind: SchedulerPolicy\n"


def test_a_scheduler_policy_has_the_same_fields():
    configuration, diagnostics = read(Source("f.yaml", POLICY + "parallelism: 3\nprofiles: [{schedulerName: a}]\n"))
    assert diagnostics == []
    assert configuration == of("parallelism: 3\nprofiles: [{schedulerName: a}]\n")[0]


def test_rules_belong_to_the_profile():
    body = "profiles:\n- schedulerName: a\n  variables: []\n  rules:\n  - name: x\n    filter: 'true'\n    any: thing\n"
    configuration, diagnostics = read(Source("f.yaml", POLICY + body))
    assert [(d.code, d.span.line, d.message) for d in diagnostics] == [
        (Code.UNKNOWN_FIELD, 9, 'unknown field "profiles[0].rules[0].any"'),
    ]
    assert configuration.profiles[0].rules[0].filter == "true"


def test_rules_are_unknown_to_kube_scheduler():
    assert errors("profiles:\n- rules: []\n") == ['2: : unknown field "profiles[0].rules"']


def test_a_percentage_is_accepted_and_said_to_have_no_effect():
    _, diagnostics = of("percentageOfNodesToScore: 30\nprofiles:\n- percentageOfNodesToScore: 50\n")
    assert not has_errors(diagnostics)
    assert [(d.code, d.severity, d.span.line) for d in diagnostics] == [
        (Code.NO_EFFECT, Severity.INFO, 3),
        (Code.NO_EFFECT, Severity.INFO, 5),
    ]
    assert of("percentageOfNodesToScore: 100\n")[1] == []


@pytest.mark.parametrize(("deadline", "warned"), [("2400ms", True), ("2401ms", False)])
def test_a_renew_deadline_that_stops_the_elector_is_a_warning(deadline, warned):
    _, diagnostics = of(f"leaderElection: {{renewDeadline: {deadline}}}\n")
    assert [(d.severity, d.path) for d in diagnostics] == [(Severity.WARNING, "leaderElection.renewDeadline")] * warned
