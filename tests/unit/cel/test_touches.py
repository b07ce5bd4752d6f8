"""The paths an expression reads, and what it may cost."""

import pytest

from stowplan.cel import Environment, Program, compile_expression, parse_type
from stowplan.cel.kinds import DYN

ENV = Environment({"node": DYN, "pod": DYN, "pods": parse_type("list(map(string, string))")})


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("1 + 1", set()),
        ('node.labels["a.b/c"] == pod.name', {"node.labels.a.b/c", "pod.name"}),
        ("has(node.labels.ssd)", {"node.labels.ssd"}),
        ('node.labels[?"x"].orValue("y") == node.?name.orValue("")', {"node.labels.x", "node.name"}),
        ("node.labels[pod.key]", {"node.labels.[]", "pod.key"}),
        ("node.pods.exists(p, p.labels.app == pod.app)", {"node.pods.[]", "node.pods.[].labels.app", "pod.app"}),
        ("pods.all(i, p, p.x == 'a')", {"pods.#", "pods.[].x"}),
        ("pods.filter(p, p.x == 'a').map(q, q.y)", {"pods.#", "pods.[].x", "pods.[].y"}),
        ("pods.map(p, p)", {"pods.#", "pods.[]"}),
        ("pods.size() + size(pods)", {"pods.#"}),
        ("pods.first()", {"pods"}),
        ("pods[0].a", {"pods.[].a"}),
        ("cel.bind(l, node.labels, l.a + l.b)", {"node.labels.a", "node.labels.b"}),
        ("size(node) > 0", {"node"}),
    ],
)
def test_paths(text, paths):
    assert {".".join(path) for path in compile_expression(text, ENV).touches} == paths


def test_membership_of_a_typed_map_reads_the_key():
    env = Environment({"labels": parse_type("map(string, string)")})
    assert compile_expression('"a" in labels', env).touches == {("labels", "a")}


def test_estimates_follow_declared_sizes():
    text = "pods.exists(p, p.a == 'x')"
    few = compile_expression(text, Environment(ENV.variables, sizes={("pods",): 10})).estimate.units
    many = compile_expression(text, Environment(ENV.variables, sizes={("pods",): 1000})).estimate.units
    assert few * 50 < many < few * 110


def test_the_dearest_part_is_named():
    env = Environment(ENV.variables, estimate_limit=100_000)
    assert isinstance(compile_expression("pods.all(p, p.a == 'x')", env), Program)
    (fault,) = compile_expression("1 > 2 || pods.all(p, pods.all(q, pods.all(r, p.a == r.b)))", env)
    assert "more than 100,000" in fault.message
    assert fault.span.text == "p.a == r.b"
