"""CEL over columns gives what CEL gives row by row: for every overload, and for whole expressions, errors included."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stowplan.cel import DEVICES, KUBERNETES, RULES, CelError, Environment, Program, compile_expression, vector
from stowplan.cel.column import Ragged, Rows
from stowplan.cel.kinds import DYN, parse_type
from stowplan.cel.library.named_format import FORMATS
from stowplan.cel.library.network import parse_cidr, parse_ip
from stowplan.cel.library.quantity import parse_quantity
from stowplan.cel.library.semver import parse_semver
from stowplan.cel.library.url import parse_url
from stowplan.cel.values import NONE, Duration, Optional, Timestamp, TypeValue, UInt, as_key, kind_of

_SIZE = 12
_TEXTS = [
    "", "a", "b", "aa", "é😀", "web-1", "a/b", "1", "-5", "1.5Gi", "2k", "10.0.0.1", "10.0.0.0/8", "::1", "1.2.3", "v1.2",
    "https://h:1/p?q=1", "2024-02-29T01:02:03Z", "90s", "Europe/Berlin", "+02:00",
    "true", "(", "^a+$", "%s-%d", "dns1123Label", "YQ==",
]  # fmt: skip
_INTS = [0, 1, -1, 2, 3, 7, 64, -(2**63), 2**63 - 1, 2**53 + 1, 2**32]
_DOUBLES = [0.0, -0.0, 1.0, -1.5, 2.5, 1e300, -1e300, float("inf"), float("nan"), 9007199254740993.0, 3.0]
_OPERATORS = {"-_": "-{0}", "!_": "!{0}", "@in": "{0} in {1}", "_[_]": "{0}[{1}]", "_[?_]": "{0}[?{1}]"}


def _value(kind, rng):
    """A value of the type, often one of the awkward ones."""
    name = kind.name
    pools = {
        "int": _INTS,
        "double": _DOUBLES,
        "string": _TEXTS,
        "bool": [False, True],
        "null_type": [None],
        "uint": [UInt(0), UInt(1), UInt(7), UInt(2**64 - 1)],
        "bytes": [b"", b"a", b"\xff", b"ab"],
        "timestamp": [Timestamp(0), Timestamp(10**18 + 5), Timestamp(-(10**17)), Timestamp(2 * 10**20)],
        "duration": [Duration(0), Duration(-1500000000), Duration(2**63 - 1), Duration(10**9)],
        "type": [TypeValue("int"), TypeValue("string")],
        "kubernetes.Quantity": [parse_quantity(text) for text in ("0", "1.5Gi", "250m", "1k", "-3")],
        "kubernetes.URL": [parse_url(text) for text in ("/a", "https://h:1/p?q=1")],
        "kubernetes.Semver": [parse_semver(text) for text in ("1.2.3", "1.2.3-a.1", "2.0.0")],
        "kubernetes.NamedFormat": list(FORMATS.values())[:3],
        "net.IP": [parse_ip(text) for text in ("10.0.0.1", "::1", "224.0.0.1")],
        "net.CIDR": [parse_cidr(text) for text in ("10.0.0.0/8", "10.1.2.3/24", "::/0")],
    }
    if name in pools:
        return rng.choice(pools[name])
    if name == "list":
        return [_value(kind.params[0], rng) for _ in range(rng.randrange(4))]
    if name == "map":
        return {as_key(_value(kind.params[0], rng)): _value(kind.params[1], rng) for _ in range(rng.randrange(3))}
    if name == "optional_type":
        return Optional(present=True, value=_value(kind.params[0], rng)) if rng.random() < 0.7 else NONE
    return _value(parse_type(rng.choice(["int", "string", "bool", "double", "null_type"])), rng)


def _concrete(kind, chosen):
    if kind.is_param:
        return chosen.setdefault(kind.name, parse_type(["string", "int"][len(chosen) % 2]))
    return type(kind)(kind.name, tuple(_concrete(param, chosen) for param in kind.params))


def _expression(overload):
    names = [f"x{index}" for index in range(len(overload.params))]
    if overload.name in _OPERATORS:
        return _OPERATORS[overload.name].format(*names)
    if overload.name.startswith("_"):
        return f"{names[0]} {overload.name.strip('_')} {names[1]}"
    return f"{names[0]}.{overload.name}({', '.join(names[1:])})" if overload.member else f"{overload.name}({', '.join(names)})"


def _shown(value):
    """The value so that what differs looks different: uint and int, -0.0 and 0.0, the text of an error."""
    if isinstance(value, CelError):
        return "error", value.message
    if isinstance(value, (list, tuple)):
        return "list", [_shown(item) for item in value]
    if isinstance(value, Mapping):
        return "map", sorted(((repr(key), _shown(item)) for key, item in value.items()), key=repr)
    if isinstance(value, Optional):
        return "optional", value.present and _shown(value.value)
    return kind_of(value), repr(value)


def _agrees(program, columns, constants, size=_SIZE):
    answer = program.evaluate_rows({name: Rows(values) for name, values in columns.items()} | constants, size)
    for row in range(size):
        expected = program.evaluate({name: values[row] for name, values in columns.items()} | constants)
        assert _shown(answer.column.row(row)) == _shown(expected), (program.source.text, row, columns, constants)
    return answer


def test_the_table_has_every_overload_of_every_dialect_for_rules():
    """What `test_every_overload` runs over: nothing that an expression of a rule can call is left out."""
    tables = (RULES, KUBERNETES, DEVICES)
    assert {overload.signature for table in tables for overload in table.overloads} == {o.signature for o in RULES.overloads}
    callable_ = {name for name, _ in Environment({}).functions}
    assert callable_ == {overload.name for overload in RULES.overloads}


@pytest.mark.parametrize("overload", RULES.overloads, ids=lambda overload: overload.signature)
@pytest.mark.parametrize("typed", [True, False], ids=["typed", "dyn"])
def test_every_overload(overload, typed):
    rng = random.Random(overload.signature)  # noqa: S311 - the same values in every run
    chosen = {}
    kinds = [_concrete(param, chosen) for param in overload.params]
    variables = {f"x{index}": kind if typed else DYN for index, kind in enumerate(kinds)}
    program = compile_expression(_expression(overload), Environment(variables))
    assert isinstance(program, Program), program
    for _ in range(6):
        columns, constants = {}, {}
        for index, kind in enumerate(kinds):
            if rng.random() < 0.7:
                columns[f"x{index}"] = [_value(kind, rng) for _ in range(_SIZE)]
            else:
                constants[f"x{index}"] = _value(kind, rng)
        _agrees(program, columns, constants)


_EXPRESSIONS = [
    'node.labels["zone"] == pod.labels["zone"]',
    "has(node.labels.ssd) && node.memory > pod.memory ? 10 : 0",
    'has(node.labels.ssd) || node.labels.gpu == "a100" || 10 / node.count > 1',
    'node.pods.exists(p, p.labels["app"] == pod.labels["app"])',
    "node.pods.all(p, p.priority < pod.priority || p.labels.app != node.labels.zone)",
    "node.pods.exists_one(p, 10 / p.priority > 2)",
    'node.pods.filter(p, p.priority > 0).map(p, p.labels.app).exists(a, a == "x")',
    "node.pods.filter(p, p.priority > 0).size() + node.count",
    "node.pods.map(p, p.priority > 1, p.priority * 2)",
    "node.pods.map(p, p.priority).sum()",
    "node.pods.filter(p, p.priority > 0).map(p, p.priority).max()",
    "node.pods.size() > 0 ? node.pods.map(p, double(p.priority) / 3.0).sum() : 0.0",
    "node.pods.all(i, p, i < node.count || p.priority > i)",
    'node.labels.all(k, k != "ssd")',
    'node.labels.exists(k, v, k == "zone" && v == "b")',
    'node.labels[?"zone"].orValue("none") + "-" + string(node.count)',
    'node.?labels.zone.optMap(z, z + "!").orValue(node.labels.gpu)',
    'node.labels[?"gpu"].or(node.labels[?"zone"]).hasValue()',
    'node.labels[?"gpu"].optMap(g, node.count / (node.count - 2)).orValue(7)',
    'node.labels[?"zone"].optFlatMap(z, node.labels[?z]).hasValue()',
    'node.labels[?"zone"].optFlatMap(z, dyn(z)).hasValue()',
    "optional.of(pod.priority).optMap(p, p * node.count).value() > 1",
    "optional.none().optMap(p, node.count).hasValue() || node.mixed.optMap(m, m).hasValue()",
    "node.pods.map(p, p.labels).exists(l, l.?app.optMap(a, a == node.labels.zone).orValue(false))",
    "pod.tolerations.exists(t, t.key in node.labels && node.labels[t.key] == t.value)",
    "pod.tolerations.all(t, t.n > node.count)",
    'cel.bind(z, node.labels.zone, z == "a" || z == "b" || node.count > 2)',
    'node.count % 2 == 0 ? node.labels.zone : "odd"',
    "node.count / (node.count - 2) + node.memory",
    "double(node.count) * 1.5 > double(node.memory) ? 1.0 : double(node.count) / 0.0",
    "dyn(node.count) == 2.0 || dyn(node.labels) == node.pods",
    'node.mixed == "a" || node.mixed > 1',
    "type(node.mixed) == int ? node.mixed + 1 : size(node.mixed)",
    "node.pods.all(i, p, pod.memory == i % i || node.mixed == p.priority % p.priority)",
    "!(node.ready && node.count > 1) != node.ready",
    'node.labels.zone in ["a", "b"] && !node.labels.zone.startsWith("b")',
    "[node.count, dyn(2)].max() + {'a': node.count}.a",
    'quantity(node.size).compareTo(quantity("1Gi")) > 0',
    "node.pods.exists(p, node.pods.exists(q, q.priority == p.priority + 1))",
    "node.missing.deeper || node.ready",
    "lists.range(3).map(i, i * node.count).sum()",
    "node.pods.sortBy(p, p.priority).map(p, p.priority)",
    "now - node.since > duration('1h') && node.since + duration('90m') < now",
    "(now - node.since).getHours() + node.since.getFullYear()",
    "node.ready ? now : node.since",
    "math.greatest(node.count, node.memory, 3)",
    "node.pods.sortBy(p, p.labels.app).size() > 0 || node.ready",
    "node.ready || node.pods.sortBy(p, p.labels.app).size() > 0 || node.count > 1",
    "node.pods.exists(p, p.priority > 1 || node.pods.sortBy(q, q.labels.app).size() > p.priority)",
    "node.pods.all(p, p.priority > 1 && node.pods.sortBy(q, q.labels.app).size() > p.priority)",
    "node.mixed == [node.count] || node.pods == node.pods && node.labels == pod.labels",
]

_LABELS = st.dictionaries(st.sampled_from(["zone", "ssd", "gpu", "app"]), st.sampled_from(["a", "b", "x", "a100"]), max_size=3)
_PODS = st.lists(st.fixed_dictionaries({"labels": _LABELS, "priority": st.integers(-2, 5)}), max_size=4)
_NODE = st.fixed_dictionaries(
    {
        "labels": _LABELS,
        "memory": st.sampled_from([0, 1, 500, 2**63 - 1]),
        "count": st.integers(0, 4),
        "ready": st.booleans(),
        "since": st.sampled_from([Timestamp(0), Timestamp(10**18), Timestamp(10**18 - 7200 * 10**9), Timestamp(-(2**63))]),
        "pods": _PODS,
        "mixed": st.sampled_from([1, 2.5, "a", True, None, "abc"]),
        "size": st.sampled_from(["1Gi", "2Gi", "10m", "x"]),
    },
)
_POD = st.fixed_dictionaries(
    {
        "labels": _LABELS,
        "memory": st.integers(0, 1000),
        "priority": st.integers(-1, 5),
        "tolerations": st.lists(
            st.fixed_dictionaries(
                {"key": st.sampled_from(["zone", "gpu"]), "value": st.sampled_from(["a", "b"]), "n": st.integers(0, 4)}
            ),
            max_size=3,
        ),
    },
)
_PROGRAMS = {text: compile_expression(text, Environment({"node": DYN, "pod": DYN, "now": DYN})) for text in _EXPRESSIONS}


@pytest.mark.parametrize("text", _EXPRESSIONS)
@settings(max_examples=12, deadline=None)
@given(nodes=st.lists(_NODE, min_size=1, max_size=8), pod=_POD, together=st.sampled_from((vector.TOGETHER, 3)))
def test_whole_expressions(text, nodes, pod, together):
    program = _PROGRAMS[text]
    assert isinstance(program, Program), program
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector, "TOGETHER", together)  # elements that are looked at in one go
        _agrees(program, {"node": nodes}, {"pod": pod, "now": Timestamp(10**18)}, len(nodes))


def test_common_expressions_need_no_rows():
    nodes = [{"labels": {"zone": "a"}, "memory": 1, "count": 2, "pods": [{"labels": {"app": "x"}, "priority": 1}]}] * 3
    pod = {"labels": {"zone": "a", "app": "x"}, "memory": 5, "priority": 1, "tolerations": []}
    for text in _EXPRESSIONS[:22]:
        answer = _PROGRAMS[text].evaluate_rows({"node": Rows(nodes), "pod": pod}, len(nodes))
        assert answer.by_rows == (), text


_PLAIN = {
    "small": st.integers(-3, 3),
    "int": st.sampled_from(_INTS),
    "double": st.one_of(st.sampled_from([*_DOUBLES, 0.1, 1e16]), st.floats()),
    "numbers": st.floats(-1e17, 1e17),
    "zeros": st.sampled_from([0.0, -0.0, 1.0]),
    "bool": st.booleans(),
    "duration": st.sampled_from([Duration(0), Duration(-1500000000), Duration(2**63 - 1), Duration(10**9)]),
    "timestamp": st.sampled_from([Timestamp(0), Timestamp(10**18 + 5), Timestamp(-(10**17)), Timestamp(2 * 10**20)]),
    "uint": st.sampled_from([UInt(0), UInt(7), UInt(2**64 - 1)]),
    "string": st.sampled_from(_TEXTS),
    "mixed": st.one_of(st.integers(-1, 1), st.sampled_from([0.5, "a", True, None, UInt(1), [1], float("nan")])),
}
_TYPES = {"small": "int", "numbers": "double", "zeros": "double", "mixed": "dyn"}
_REDUCTIONS = ("sum()", "min()", "max()", "isSorted()", "size()")
_MAPPED = (
    "xs.map(x, x)",
    "xs.map(x, x != xs[0], x)",
    "xs.map(x, x).filter(x, x == x)",
    "xs.map(x, x + x)",
    "xs.map(x, 1 / dyn(x))",
)


@pytest.mark.parametrize("kind", _PLAIN)
@pytest.mark.parametrize("call", _REDUCTIONS)
@settings(max_examples=30, deadline=None)
@given(data=st.data(), together=st.sampled_from((vector.TOGETHER, 3)), typed=st.sampled_from(("own", "dyn", "other")))
def test_lists_brought_to_one_value(kind, call, data, together, typed):
    """Also where the checker believes in another type than the elements have."""
    found = {"own": _TYPES.get(kind, kind), "dyn": "dyn", "other": "double" if kind == "int" else "int"}[typed]
    variable = parse_type(f"list({found})") if found != "dyn" else DYN
    program = compile_expression(f"{data.draw(st.sampled_from(_MAPPED))}.{call}", Environment({"xs": variable}))
    if not isinstance(program, Program):  # the checker refuses the sum of strings, and the like
        return
    lists = data.draw(st.lists(st.lists(_PLAIN[kind], max_size=6), min_size=1, max_size=8))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector, "TOGETHER", together)
        _agrees(program, {"xs": lists}, {}, len(lists))


@pytest.mark.parametrize("call", _REDUCTIONS)
@pytest.mark.parametrize(
    "items", [[[1, 3, 2], [], [5]], [[0.1] * 7, [0.2, -1.5]], [[Duration(5)], []]], ids=["int", "double", "duration"]
)
def test_such_lists_are_not_made(call, items, monkeypatch):
    program = compile_expression(f"xs.map(x, x).{call}", Environment({"xs": DYN}))
    expected = [_shown(program.evaluate({"xs": row})) for row in items]

    def row(*_):
        raise AssertionError("a list was made of a row")

    monkeypatch.setattr(Ragged, "row", row)
    column = program.evaluate_rows({"xs": Rows(items)}, len(items)).column
    assert [_shown(column.row(place)) for place in range(len(items))] == expected


def test_rows_are_named_when_they_take_over():
    program = _PROGRAMS["node.pods.sortBy(p, p.priority).map(p, p.priority)"]
    answer = program.evaluate_rows({"node": Rows([{"pods": [{"priority": 2}, {"priority": 1}]}]), "pod": {}}, 1)
    assert answer.column.row(0) == [1, 2]
    assert "sortBy" in answer.by_rows[0]
