"""Whatever is wrong with the input is said in one message, at the place where it is wrong."""

import json
import textwrap

import pytest

from stowplan import ClusterError, PolicyError, load_policy
from stowplan.edge.load import load_cluster, read_cluster

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}


def pod(name="p", **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "web"}, "spec": {"priority": 0, **spec}}


def requesting(amount, name="p"):
    return pod(name, containers=[{"name": "c", "resources": {"requests": {"cpu": amount}}}])


def listed(*items):
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {"resourceVersion": ""}}


def kubectl(*items):
    return json.dumps(listed(*items), indent=4, ensure_ascii=False)


def fails(path, text):
    path.write_text(text)
    with pytest.raises(ClusterError) as caught:
        read_cluster([path])
    return [diagnostic for diagnostic in caught.value.diagnostics if diagnostic.is_error]


def only(path, text):
    (diagnostic,) = fails(path, text)
    return diagnostic


def position(text, needle, after=""):
    """Line and column of `needle`, the first one behind `after`."""
    offset = text.index(needle, text.index(after))
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def where(diagnostic):
    return diagnostic.span.line, diagnostic.span.column


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dump.json"


def test_a_malformed_quantity_in_a_streamed_list(path):
    text = kubectl(NODE, requesting("100m", "ä"), requesting("1x5"), requesting("1"))
    found = only(path, text)
    assert where(found) == position(text, '"1x5"')
    assert "web/p" in found.message
    assert found.span.source.name == str(path)
    assert '"cpu": "1x5"' in found.span.source.line(found.span.line)


def test_a_malformed_quantity_in_the_last_item(path):
    text = kubectl(NODE, requesting("100m", "ä"), requesting("1x5"))
    assert where(only(path, text)) == position(text, '"1x5"')


@pytest.mark.parametrize("indent", [None, 1, 4])
def test_a_negative_quantity(path, indent):
    text = json.dumps(listed(NODE, requesting("-1")), indent=indent)
    assert where(only(path, text)) == position(text, '"-1"')


def test_every_error_is_found(path):
    text = kubectl(requesting("1x5", "a"), NODE, requesting("2x5", "b"), requesting("-3", "c"))
    assert [where(found) for found in fails(path, text)] == [position(text, f'"{bad}"') for bad in ("1x5", "2x5", "-3")]


def test_but_not_hundreds_of_them(path):
    path.write_text(kubectl(*(requesting("1x5", f"p{number}") for number in range(100))))
    with pytest.raises(ClusterError) as caught:
        read_cluster([path])
    *errors, last = caught.value.diagnostics
    assert len(errors) == 20
    assert last.message == "only the first 20 errors are shown"


def test_an_unknown_selector_operator(path):
    expression = {"key": "zone", "operator": "Within", "values": ["a"]}
    term = {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": "zone", "labelSelector": {"matchExpressions": [expression]}}
        ]
    }
    text = kubectl(NODE, pod(affinity={"podAffinity": term}))
    found = only(path, text)
    assert "Within" in found.message
    assert where(found)[0] in {position(text, '"Within"')[0], position(text, '"matchExpressions"')[0]}


POD_IN_YAML = """\
apiVersion: v1
kind: Pod
metadata: {name: ä, namespace: web}
spec:
  priority: 0
  containers:
  - name: c
    resources:
      requests:
        cpu: 1x5
"""


def test_an_error_in_yaml(tmp_path):
    item = textwrap.indent(POD_IN_YAML, "  ").replace("  api", "- api", 1)
    for text in (
        f"# first\n---\napiVersion: v1\nitems:\n{item.replace('1x5', '1')}{item}kind: List\n",
        f"# first\n---\n{item}",
        f"---\napiVersion: v1\n---\n{POD_IN_YAML}".replace("apiVersion: v1\n---", "# nothing\n---"),
    ):
        assert where(only(tmp_path / "dump.yaml", text)) == position(text, "1x5")


def test_an_error_in_a_pod_that_waited_for_its_class(path):
    waiting = requesting("1x5")
    del waiting["spec"]["priority"]
    for text in (kubectl(NODE, waiting, requesting("1", "q")), json.dumps(listed(NODE, waiting)), json.dumps(waiting)):
        assert where(only(path, text)) == position(text, '"1x5"')


def test_an_object_without_a_name(path):
    text = kubectl(
        NODE,
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"namespace": "web"}, "spec": {"priority": 0}},
        NODE | {"metadata": {"name": "n2"}},
    )
    found = only(path, text)
    assert "name" in found.message
    assert where(found) == position(text, '"metadata"', '"Pod"')


@pytest.mark.parametrize("indent", [None, 4])
def test_an_object_without_a_kind(path, indent):
    text = json.dumps(listed(NODE, {"apiVersion": "v1", "metadata": {"name": "lost"}}), indent=indent)
    found = only(path, text)
    assert "kind" in found.message
    assert where(found)[0] == position(text, '"lost"')[0] - (3 if indent else 0)


@pytest.mark.parametrize("junk", ["null", "7", '"text"', "[]"])
def test_an_item_that_is_no_object(path, junk):
    text = json.dumps(listed(NODE)).replace("]", f", {junk}]", 1) if junk != "[]" else json.dumps(listed(NODE, []))
    assert where(only(path, text))[0] == 1


@pytest.mark.parametrize("again", [NODE, NODE | {"spec": {"unschedulable": True}}])
def test_a_node_twice(path, again):
    text = kubectl(NODE, again, pod())
    found = only(path, text)
    assert found.message == "Node n1 is there twice"
    assert where(found)[0] == position(text, '"name": "n1"', '"name": "n1"')[0] + text[text.index('"n1"') + 4 :].split('"n1"')[
        0
    ].count("\n")
    with pytest.raises(ClusterError, match="Node n1 is there twice"):
        load_cluster([NODE, again])


def test_a_pod_twice_is_a_warning(path):
    path.write_text(kubectl(NODE, pod(), pod(nodeName="n1")))
    store, report = read_cluster([path])
    assert [warning.message for warning in report.warnings] == ["Pod web/p is there more than once: the last one counts"]
    assert store.place_of("web/p") == "n1"


def test_pods_on_missing_nodes_are_warnings(path):
    path.write_text(
        kubectl(NODE, pod("a", nodeName="gone"), pod("b", nodeName="gone"), pod("c", nodeName="lost"), pod("d", nodeName="n1"))
    )
    assert [warning.message for warning in read_cluster([path])[1].warnings] == [
        "2 pods (web/a is one) are bound to node gone, which is not there",
        "pod web/c is bound to node lost, which is not there",
    ]


def test_broken_json_in_a_streamed_list(path):
    text = kubectl(NODE, requesting("1"), requesting("2", "q"), requesting("3", "r")).replace('"name": "q"', '"name": oops')
    found = only(path, text)
    assert found.message.startswith("broken JSON: ")
    assert where(found) == position(text, "oops")


@pytest.mark.parametrize("indent", [None, 2, 4])
def test_broken_json(path, indent):
    text = json.dumps(listed(NODE, pod()), indent=indent).replace('"Pod"', "Pod")
    assert where(only(path, text)) == position(text, "Pod")


def test_broken_json_in_a_kind_that_is_not_read(path):
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"x": "y"}}
    text = kubectl(NODE, secret, pod()).replace('"x": "y"', '"x": y')
    assert where(only(path, text)) == position(text, "y", '"x":')


@pytest.mark.parametrize("layout", [kubectl, lambda *items: json.dumps(listed(*items))])
def test_a_truncated_dump_is_never_taken_for_a_whole_one(path, layout):
    text = layout(NODE, requesting("1"), requesting("2", "q"))
    for length in range(1, len(text)):
        found = only(path, text[:length])
        assert "truncated" in found.message
        assert where(found)[0] == text[:length].rstrip().count("\n") + 1


def test_a_truncated_yaml_list(tmp_path):
    text = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata:\n    name: n1\n"
    assert "kind" in only(tmp_path / "dump.yaml", text).message


@pytest.mark.parametrize(
    "text",
    [
        "a: [1\nb: 2\n",
        "a: b: c\n",
        "\tkind: Node\n",
        "kind: Node\n  name: x\n",
        "kind: *gone\n",
        "a: 'x\n",
        "kind: !!python/name:os.system x\n",
    ],
)
def test_broken_yaml(tmp_path, text):
    found = only(tmp_path / "dump.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n---\n" + text)
    assert found.message.startswith("broken YAML: ")
    assert found.span.line >= 5


def test_characters_that_yaml_forbids(tmp_path):
    assert only(tmp_path / "dump.yaml", "kind: Node\nmetadata: {name: \x07}\n").message.startswith("broken YAML: ")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("NAME   STATUS   ROLES\nn1     Ready    <none>\n", "dump with -o json"),
        ("NAMESPACE   NAME   READY   STATUS\nweb   p   1/1   Running\n", "dump with -o json"),
        ("Error from server (Forbidden): pods is forbidden\n", "kubectl failed: Error from server (Forbidden): pods is forbidden"),
        ("No resources found in web namespace.\n", "kubectl failed: No resources found"),
        ("\x7fELF\x00\x00\x01", "binary data"),
    ],
)
def test_texts_that_are_no_dump(path, text, said):
    found = only(path, text)
    assert said in found.message
    assert str(path) in found.message


@pytest.mark.parametrize("layout", [json.dumps, lambda status: json.dumps(listed(NODE, status))])
def test_an_answer_of_the_api_server_is_no_cluster(path, layout):
    found = only(path, layout({"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": "pods is forbidden"}))
    assert "pods is forbidden" in found.message
    assert found.span.source.name == str(path)


def test_a_class_that_is_missing_does_not_block(path):
    items = [pod(name, priorityClassName="high", priority=None) for name in ("a", "b", "c")]
    path.write_text(kubectl(NODE, *items, pod("d", priorityClassName="system-node-critical", priority=None)))
    store, report = read_cluster([path])
    (warning,) = report.warnings
    assert warning.message == (
        'there is no PriorityClass "high" for web/a and 2 more: priority 0 is taken; add priorityclasses to the dump'
    )
    assert {key: waiting.spec.priority for key, waiting in store.pending.items()} == {
        "web/a": 0, "web/b": 0, "web/c": 0, "web/d": 2_000_001_000,
    }  # fmt: skip
    path.write_text(
        kubectl(NODE, requesting("1x5") | {"spec": {**requesting("1x5")["spec"], "priority": None, "priorityClassName": "x"}})
    )
    with pytest.raises(ClusterError, match="1x5"):
        read_cluster([path])


def test_a_node_that_cannot_be_read_is_not_missing(path):
    bad = NODE | {"status": {"allocatable": {"cpu": "4x"}}}
    path.write_text(kubectl(bad, pod(nodeName="n1")))
    with pytest.raises(ClusterError) as caught:
        read_cluster([path])
    (found,) = caught.value.diagnostics
    assert "4x" in found.message


def test_findings_have_a_short_repr(path):
    text = kubectl(NODE, requesting("1x5"))
    found = only(path, text)
    assert f"{path}:{found.span.line}:{found.span.column}" in repr(found)
    assert "apiVersion" not in repr(found)


def test_nested_without_end(path):
    assert "deeply" in only(path, '{"kind": "Node", "metadata": ' + "[" * 100_000).message


def test_text_that_is_no_cluster(path):
    assert "expected an object" in only(path, "hello\n").message


@pytest.mark.parametrize("text", ["", "\n \n", "# only a comment\n", "---\n---\n"])
def test_an_empty_input(path, text):
    assert only(path, text).message == f"{path}: the input is empty"


def test_a_missing_file(path):
    with pytest.raises(ClusterError, match="no such file or directory"):
        read_cluster([path])


def test_a_folder_without_files(tmp_path):
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(ClusterError, match=r"no .* file in this folder"):
        read_cluster([tmp_path])


def test_errors_of_several_files_come_together(tmp_path):
    (tmp_path / "a.json").write_text("{")
    (tmp_path / "b.yaml").write_text("a: [")
    with pytest.raises(ClusterError) as caught:
        read_cluster([tmp_path, tmp_path / "c.json"])
    assert len([found for found in caught.value.diagnostics if found.is_error]) == 3


def test_invalid_utf_8(path):
    path.write_bytes(kubectl(NODE, pod()).encode().replace(b'"web"', b'"\xff\xfe"'))
    with pytest.raises(ClusterError, match="UTF-8"):
        read_cluster([path])


def test_a_missing_policy_file(tmp_path):
    with pytest.raises(PolicyError, match="no such file or directory"):
        load_policy(tmp_path / "none.yaml")


def test_a_policy_from_file_dict_and_nothing(tmp_path):
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(document))
    default = load_policy().profiles.keys()
    assert load_policy(str(path)).profiles.keys() == load_policy(document).profiles.keys() == default


def test_an_integer_that_is_too_large_is_pointed_at(path):
    text = kubectl(NODE, pod(priority=2**31), pod("q"))
    found = only(path, text)
    assert where(found) == position(text, str(2**31))
    assert "web/p: spec.priority: does not fit into int32" in found.message
