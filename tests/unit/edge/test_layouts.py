"""One cluster, written in every layout there is, must read the same."""

import gzip
import io
import json
import os
import textwrap
import threading

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from stowplan.edge import dump
from stowplan.edge.load import ClusterError, load_cluster, read_cluster


def node(name="n1", **labels):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def pod(name, node_name=None, **spec):
    container = {"name": "main", "image": "a", "resources": {"requests": {"cpu": "100m"}}}
    where = {"nodeName": node_name} if node_name else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "web", "annotations": {"note": "},\n        {\n---\n- "}},
        "spec": {"priority": 0, "containers": [container], **where, **spec},
    }


OBJECTS = [node("n1", zone="a"), node("n2"), pod("p1", "n1"), pod("p2", "n2"), pod("p3"), pod("ünïcödé-名")]
LIST = {"apiVersion": "v1", "items": OBJECTS, "kind": "List", "metadata": {"resourceVersion": ""}}
KINDLESS = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in OBJECTS]


def typed(kind, **arguments):
    items = [bare for bare, item in zip(KINDLESS, OBJECTS, strict=True) if item["kind"] == kind]
    return json.dumps({"kind": f"{kind}List", "apiVersion": "v1", "metadata": {"x": {}}, "items": items}, **arguments)


def as_yaml(value):
    return yaml.safe_dump(value, allow_unicode=True)


LAYOUTS = {
    "as kubectl prints JSON": json.dumps(LIST, indent=4),
    "with tabs": json.dumps(LIST, indent="\t"),
    "with Windows line ends": json.dumps(LIST, indent=4).replace("\n", "\r\n"),
    "two lists in a row": json.dumps({**LIST, "items": OBJECTS[:2]}, indent=4)
    + "\n"
    + json.dumps({**LIST, "items": OBJECTS[2:]}, indent=4),
    "items without line ends between them": json.dumps(LIST, indent=4).replace("},\n        {", "},{"),
    "on one line": json.dumps(LIST),
    "JSON lines": "\n".join(map(json.dumps, OBJECTS)) + "\n",
    "JSON objects without anything between": "".join(map(json.dumps, OBJECTS)),
    "indented JSON objects": "\n".join(json.dumps(item, indent=2) for item in OBJECTS),
    "JSON documents": "\n---\n".join(json.dumps(item, indent=2) for item in OBJECTS),
    "a JSON array": json.dumps(OBJECTS, indent=2),
    "lists of one kind": typed("Node") + typed("Pod"),
    "indented lists of one kind": typed("Node", indent=4) + "\n" + typed("Pod", indent=4),
    "lists of one kind, keys sorted": typed("Node", indent=4, sort_keys=True) + "\n" + typed("Pod", indent=4, sort_keys=True),
    "as kubectl prints YAML": as_yaml(LIST),
    "YAML items further in": "apiVersion: v1\nitems:\n" + textwrap.indent(as_yaml(OBJECTS), "  ") + "kind: List\n",
    "YAML documents": "---\n" + "\n---\n".join(map(as_yaml, OBJECTS)),
    "YAML and JSON documents": "\n---\n".join([as_yaml(OBJECTS[0]), *map(json.dumps, OBJECTS[1:4]), *map(as_yaml, OBJECTS[4:])]),
    "a YAML sequence": as_yaml(OBJECTS),
    "YAML with comments and markers": "# a dump\n%YAML 1.1\n---\n# nothing\n---\n" + as_yaml(LIST) + "...\n---\n",
    "UTF-8 with a mark": "\ufeff" + json.dumps(LIST, indent=4),
}


def summary(store):
    bound = {(name, key) for name, row in store.row_of.items() for key in store.seats[row]}
    return set(store.row_of), bound, set(store.pending), {n.name: dict(n.labels.items()) for n in store.nodes}


EXPECTED = summary(load_cluster(OBJECTS))


def test_the_expectation_itself():
    nodes, bound, pending, labels = EXPECTED
    assert nodes == {"n1", "n2"}
    assert bound == {("n1", "web/p1"), ("n2", "web/p2")}
    assert pending == {"web/p3", "web/ünïcödé-名"}
    assert labels == {"n1": {"zone": "a"}, "n2": {}}


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_reads_the_same(tmp_path, monkeypatch, layout, chunk):
    text = LAYOUTS[layout].encode()
    # the head of the list must be in the first chunk
    monkeypatch.setattr(dump, "_CHUNK", max(chunk, text.find(b"{", text.find(b"items")) + 3) if chunk < 1 << 20 else chunk)
    path = tmp_path / "dump"
    path.write_bytes(text)
    store, report = read_cluster([path])
    assert summary(store) == EXPECTED
    assert dict(report.counts) == {"Node": 2, "Pod": 4}
    assert not report.skipped
    assert not report.warnings


def test_the_first_layout_is_streamed():
    items = [*OBJECTS, *(pod(f"more-{i}") for i in range(100))]
    text = json.dumps({**LIST, "items": items}, indent=4).encode()
    seen = []
    dump.read_dump(io.BytesIO(text), "x", lambda raw, place: seen.append((json.loads(raw), len(place.text.data))))
    assert [item for item, _ in seen] == items
    assert all(
        held == len(json.dumps(item, indent=4).encode()) + 8 * json.dumps(item, indent=4).count("\n") for item, held in seen[:-1]
    )


def test_powershell_writes_utf_16(tmp_path):
    path = tmp_path / "dump.json"
    path.write_bytes(LAYOUTS["as kubectl prints JSON"].encode("utf-16"))
    assert summary(read_cluster([path])[0]) == EXPECTED


def test_files_folders_and_pipes(tmp_path, monkeypatch):
    folder = tmp_path / "folder" / "deeper"
    folder.mkdir(parents=True)
    (folder / "nodes.yaml").write_text(as_yaml(OBJECTS[0]))
    (folder.parent / "more.yml").write_text(as_yaml(OBJECTS[1]))
    (folder / "README.md").write_text("{ not a dump")
    single = tmp_path / "single.json"
    single.write_text(json.dumps(OBJECTS[2]))
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_text(json.dumps({**LIST, "items": OBJECTS[3:5]}, indent=4)))
    writer.start()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(OBJECTS[5]).encode())))
    store, _ = read_cluster([tmp_path / "folder", str(single), fifo, "-"])
    writer.join()
    assert summary(store) == EXPECTED


def test_progress_counts_every_byte(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(LAYOUTS["as kubectl prints JSON"])
    sizes = []
    read_cluster([path], sizes.append)
    assert sum(sizes) == path.stat().st_size


def test_anchors_across_items(tmp_path):
    path = tmp_path / "dump.yaml"
    spec = "  spec: &spec\n    priority: 7\n"
    one = "- apiVersion: v1\n  kind: Pod\n  metadata: {name: a, namespace: x}\n"
    path.write_text(f"apiVersion: v1\nkind: List\nitems:\n{one}{spec}{one.replace('a,', 'b,')}  spec: *spec\n")
    store, _ = read_cluster([path])
    assert {key: pod.spec.priority for key, pod in store.pending.items()} == {"x/a": 7, "x/b": 7}


def test_yaml_values_are_those_of_kubernetes(tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n  labels: {<<: {a: b}, since: 2026-01-02, time: 12:30, eq: =}\n"
    )
    store, _ = read_cluster([path])
    assert dict(store.nodes[0].labels.items()) == {"a": "b", "since": "2026-01-02", "time": "12:30", "eq": "="}


def test_keys_are_always_text(tmp_path):
    path = tmp_path / "node.yaml"
    path.write_text("apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n  labels: {8080: a, 1.5: b}\n")
    store, _ = read_cluster([path])
    assert dict(store.nodes[0].labels.items()) == {"8080": "a", "1.5": "b"}


def test_shared_values_are_written_out(tmp_path):
    path = tmp_path / "dump.yaml"
    path.write_text(
        "- {kind: Node, metadata: {name: a, labels: &all {zone: &zone z, rack: *zone}}}\n"
        "- {kind: Node, metadata: {name: b, labels: *all}}\n"
        "- {kind: Node, metadata: {name: c, labels: {<<: [*all, {rack: r, more: m}], zone: y}}}\n"
    )
    a, b, c = read_cluster([path])[0].nodes
    assert dict(b.labels.items()) == dict(a.labels.items()) == {"zone": "z", "rack": "z"}
    assert dict(c.labels.items()) == {"zone": "y", "rack": "z", "more": "m"}


CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
COMMON = {**CLASS, "metadata": {"name": "common"}, "value": 5, "globalDefault": True}


@pytest.mark.parametrize("indent", [None, 4])
@pytest.mark.parametrize("order", [1, -1])
def test_priority_classes_may_come_last(tmp_path, order, indent):
    raw = [pod("named", priorityClassName="high"), pod("unnamed"), pod("given")]
    del raw[0]["spec"]["priority"]
    raw[1]["spec"]["priority"] = None
    raw[2]["metadata"]["labels"] = {"priority": "none"}
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({**LIST, "items": [*raw, CLASS, COMMON][::order]}, indent=indent))
    store, report = read_cluster([path])
    assert {key: pod.spec.priority for key, pod in store.pending.items()} == {"web/named": 1000, "web/unnamed": 5, "web/given": 0}
    assert report.counts["Pod"] == 3
    assert {p.key: p.spec.priority for p in load_cluster([*raw, CLASS, COMMON][::order]).pending.values()} == {
        "web/named": 1000,
        "web/unnamed": 5,
        "web/given": 0,
    }


def test_unknown_kinds_are_counted(tmp_path):
    path = tmp_path / "dump.json"
    others = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}} for kind in ("Secret", "Secret", "ConfigMap")]
    path.write_text(json.dumps({**LIST, "items": [*OBJECTS, *others]}, indent=4))
    store, report = read_cluster([path])
    assert dict(report.skipped) == {"Secret": 2, "ConfigMap": 1}
    assert summary(store) == EXPECTED


@given(
    st.lists(st.sampled_from(range(len(OBJECTS))), unique=True, min_size=1),
    st.sampled_from([None, 0, 1, 2, 4, "\t"]),
    st.booleans(),
)
def test_indentation_and_order_do_not_matter(order, indent, kubectl):
    objects = [OBJECTS[index] for index in order]
    text = json.dumps({**LIST, "items": objects} if kubectl else objects, indent=indent)
    seen = []
    dump.read_dump(io.BytesIO(text.encode()), "x", lambda raw, _: seen.append(json.loads(raw)))
    assert seen == objects


def test_no_nodes_is_only_a_warning(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps({**LIST, "items": []}, indent=4))
    store, report = read_cluster([path])
    assert not store.nodes
    assert [warning.message for warning in report.warnings] == ["the dump holds no nodes: add nodes"]


def test_a_pod_on_a_missing_node_is_a_warning():
    store = load_cluster([node("n1"), pod("p1", "gone")])
    assert list(store.strays) == ["gone"]


def test_lists_inside_an_iterable():
    assert summary(load_cluster([LIST])) == EXPECTED
    assert summary(load_cluster(LIST)) == EXPECTED


def test_a_path_is_read(tmp_path):
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(LIST))
    assert summary(load_cluster(path)) == summary(load_cluster(str(path))) == summary(load_cluster(tmp_path)) == EXPECTED


@pytest.mark.parametrize("wrong", [[LIST, 7], ["a.json", "b.json"], [None, None], 7, None])
def test_anything_else_is_one_error_that_says_what_to_pass(wrong):
    with pytest.raises(ClusterError, match="takes a path, a List as a dict, or an iterable of Kubernetes objects") as caught:
        load_cluster(wrong)
    assert len(caught.value.diagnostics) == 1


@pytest.mark.parametrize("name", ["dump.json.gz", "dump.json"])
def test_compressed_dumps_are_read(tmp_path, name):
    (tmp_path / name).write_bytes(gzip.compress(json.dumps(LIST, indent=4).encode()))
    assert summary(read_cluster([tmp_path])[0]) == EXPECTED
    (tmp_path / name).write_bytes(gzip.compress(json.dumps(LIST, indent=4).encode())[:-30])
    with pytest.raises(ClusterError, match="broken gzip data"):
        read_cluster([tmp_path])
