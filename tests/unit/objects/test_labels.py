"""Selectors, tolerations, host ports: the matching rules."""

import pytest

from stowplan.objects import (
    Amounts,
    HostPort,
    Labels,
    NodeSelector,
    ObjectError,
    Selector,
    Taint,
    Toleration,
    Tolerations,
    label_selector,
    parse_error,
    read,
    requirement,
)

IN = {"key": "k", "operator": "In", "values": ["a", "b"]}


@pytest.mark.parametrize(
    ("operator", "values", "accepted", "refused"),
    [
        ("In", ["a", "b"], ["a", "b"], [None, "c", ""]),
        ("NotIn", ["a", "b"], [None, "c", ""], ["a", "b"]),
        ("Exists", [], ["", "a"], [None]),
        ("DoesNotExist", [], [None], ["", "a"]),
        ("Gt", ["7"], ["8", "+8", "008", "9223372036854775807"], [None, "7", "-8", "x", "8.0", " 8", "9223372036854775808"]),
        ("Lt", ["7"], ["6", "-9223372036854775808"], [None, "7", "8", "", "1_0", "\u0663", "-9223372036854775809"]),
        ("Gt", ["x"], [], [None, "8", "x", ""]),
        ("Lt", [], [], [None, "8", ""]),
    ],
)
def test_operators(operator, values, accepted, refused):
    made = requirement("k", operator, values)
    assert [value for value in (*accepted, *refused) if made.accepts(value)] == accepted


def test_label_selectors():
    labels = Labels.of({"app": "web", "k": "a"})
    assert not label_selector(None).matches(labels)
    assert label_selector({}).matches(labels)
    assert label_selector({}) == Selector.EVERYTHING
    assert label_selector({"matchLabels": {"app": "web"}, "matchExpressions": [IN]}).matches(labels)
    assert not label_selector({"matchLabels": {"app": "db"}, "matchExpressions": [IN]}).matches(labels)
    assert not Selector.NOTHING.with_(requirement("app", "Exists", [])).matches(labels)


def test_equal_selectors_are_equal_however_they_are_written():
    by_label = label_selector({"matchLabels": {"x": "1", "y": "2"}})
    by_expression = label_selector(
        {"matchExpressions": [{"key": key, "operator": "In", "values": [v]} for key, v in (("y", "2"), ("x", "1"), ("y", "2"))]}
    )
    assert by_label == by_expression
    assert hash(by_label) == hash(by_expression)


@pytest.mark.parametrize("operator", ["in", "Gt", "", None])
def test_unknown_label_selector_operators(operator):
    with pytest.raises(ObjectError) as caught:
        label_selector({"matchExpressions": [IN, {"key": "k", "operator": operator}]}, "spec.selector")
    assert caught.value.path == "spec.selector.matchExpressions[1].operator"


def test_interned_maps():
    assert Labels.of({"b": "2", "a": "1"}) is Labels.of({"a": "1", "b": "2"})
    assert list(Labels.of({"b": "2", "a": "1"})) == ["a", "b"]
    assert Labels.of({}) != Amounts.of({})
    assert Amounts.of({"cpu": 1}).get("memory") == 0
    assert Labels.of({"a": "1"}).get("b") is None


def spec_of(**spec):
    return read({"kind": "Pod", "metadata": {"name": "p", "uid": "1"}, "spec": spec}).spec


def required(*terms) -> NodeSelector:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}}
    return spec_of(affinity=affinity).required


def named(*names, operator="In"):
    return {"key": "metadata.name", "operator": operator, "values": list(names)}


def test_node_terms():
    assert not required().matches("n1", Labels.EMPTY)
    assert not required({}).matches("n1", Labels.EMPTY)
    assert required({}, {"matchFields": [named("n1")]}).matches("n1", Labels.EMPTY)
    assert not required({"matchFields": [named("n1", operator="NotIn")]}).matches("n1", Labels.EMPTY)
    both = required({"matchExpressions": [IN], "matchFields": [named("n1")]})
    assert both.matches("n1", Labels.of({"k": "a"}))
    assert not both.matches("n2", Labels.of({"k": "a"}))
    assert not both.matches("n1", Labels.EMPTY)


def test_names_narrow_only_if_every_term_has_them():
    assert required().names() is None
    assert required({}).names() is None
    assert required({"matchFields": [named("a")]}, {"matchFields": [named("b")]}).names() == {"a", "b"}
    assert required({"matchFields": [named("a")]}, {"matchExpressions": [IN]}).names() is None
    assert required({"matchFields": [named("a"), named("b")]}).names() == frozenset()
    assert required({"matchFields": [named("a", operator="NotIn")]}).names() is None


def preferred(*terms):
    written = [{"weight": 1, "preference": {"matchExpressions": list(expressions)}} for expressions in terms]
    return spec_of(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": written}}).preferred


LABEL = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def test_parse_errors_read_as_upstream_and_keep_their_index():
    negative = {"key": "example.com/generation", "operator": "Gt", "values": ["-9"]}
    text = f'.matchExpressions[1].values[0][example.com/generation]: Invalid value: "-9": {LABEL}'
    found = preferred([IN], [], [IN, negative])
    assert found[2].term.error == text
    assert parse_error(found) == "[2]" + text
    assert not found[2].term.matches("n", {"example.com/generation": "5", "k": "a"})
    assert parse_error(preferred([IN])) is None


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ({"operator": "In"}, ".values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"),
        ({"operator": "NotIn", "values": []}, ".values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"),
        (
            {"operator": "Exists", "values": ["a"]},
            '.values: Invalid value: ["a"]: values set must be empty for exists and does not exist',
        ),
        (
            {"operator": "Lt", "values": ["1", "2"]},
            ".values: Invalid value: [\"1\",\"2\"]: for 'Gt', 'Lt' operators, exactly one value is required",
        ),
        (
            {"operator": "Lt", "values": ["a"]},
            ".values[0]: Invalid value: \"a\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ],
)
def test_other_parse_errors(expression, text):
    assert parse_error(preferred([{"key": "k", **expression}])) == "[0].matchExpressions[0]" + text


def test_several_parse_errors_are_listed():
    empty = {"key": "k", "operator": "In", "values": []}
    one = ".values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
    expected = f"[[0].matchExpressions[0]{one}, [0].matchExpressions[1]{one}, [1].matchExpressions[0]{one}]"
    assert parse_error(preferred([empty, empty], [empty])) == expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration("", "Exists", "", ""), True),
        (Toleration("k", "", "v", ""), True),
        (Toleration("k", "Equal", "v", "NoSchedule"), True),
        (Toleration("k", "Equal", "v", "NoExecute"), False),
        (Toleration("k", "Equal", "w", ""), False),
        (Toleration("j", "Exists", "", ""), False),
        (Toleration("", "Equal", "v", ""), True),
        (Toleration("k", "Gt", "1", ""), False),
        (Toleration("k", "exists", "", ""), False),
    ],
)
def test_tolerations(toleration, expected):
    assert Tolerations((toleration,)).tolerate(Taint("k", "v", "NoSchedule")) is expected


def test_preferring_tolerations_and_hard_taints():
    listed = Tolerations(tuple(Toleration("k", "Exists", "", e) for e in ("", "PreferNoSchedule", "NoSchedule", "NoExecute")))
    assert [t.effect for t in listed.preferring().items] == ["", "PreferNoSchedule"]
    effects = ("NoSchedule", "NoExecute", "PreferNoSchedule")
    assert [Taint("k", "", effect).hard for effect in effects] == [True, True, False]


def test_host_port_conflicts():
    used = HostPort("127.0.0.1", "TCP", 80)
    assert used.conflicts(HostPort("127.0.0.1", "TCP", 80))
    assert not used.conflicts(HostPort("127.0.0.2", "TCP", 80))
    assert used.conflicts(HostPort("0.0.0.0", "TCP", 80))  # noqa: S104
    assert HostPort("0.0.0.0", "TCP", 80).conflicts(used)  # noqa: S104
    assert not used.conflicts(HostPort("127.0.0.1", "UDP", 80))
    assert not used.conflicts(HostPort("::", "TCP", 80))
