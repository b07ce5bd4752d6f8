"""What the compiler refuses, where it points and what it proposes."""

import pytest

from stowplan.cel import KUBERNETES, Environment, Program, Struct, compile_expression, parse_type
from stowplan.cel.kinds import DYN, STRING, map_of
from stowplan.text import Code

META = Struct("ObjectMeta", fields={"name": STRING, "labels": map_of(STRING, STRING)})
NODE = Struct("Node", fields={"metadata": META, "cpu": parse_type("double"), "pods": parse_type("list(int)")})
ENV = Environment({"node": NODE, "pod": NODE, "params": DYN, "count": parse_type("int")})


def _faults(text, env=ENV):
    found = compile_expression(text, env)
    assert not isinstance(found, Program), f"{text} was accepted"
    return found


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("node.metadata.lables", "undefined field 'lables' in ObjectMeta, did you mean \"labels\"?", "lables"),
        ("has(node.metadata.lables)", "undefined field 'lables' in ObjectMeta, did you mean \"labels\"?", "lables"),
        ("nod.cpu", "undeclared reference to 'nod', did you mean \"node\"?", "nod"),
        ("node.cpu + 1", "found no matching overload for '_+_' applied to '(double, int)'", "+"),
        ("node.metadata.name.startWith('a')", "undeclared reference to 'startWith', did you mean \"startsWith\"?", "("),
        ("count && true", "found no matching overload for '_&&_' applied to 'int': it takes bool", "count"),
        ("count.size", "type 'int' does not support field selection", ".size"),
        ("[1, 'a']", "expected type 'int' but found 'string'", "'a'"),
        ("count.map(x, x)", "expression of type 'int' cannot be range of a comprehension (must be list, map, or dynamic)", "count"),
        ("true ? 1 : 'a'", "found no matching overload for '_?_:_' applied to '(bool, int, string)'", "true ? 1 : 'a'"),
        ("timestamp('x')", 'invalid timestamp argument: cannot parse "x" as a timestamp', "'x'"),
        ("node.metadata.name.matches('(')", "invalid matches argument: error parsing regexp: missing ): (", "'('"),
        ("'%d'.format([node.cpu])", "decimal clause can only be used on integers, was given double", "node.cpu"),
        ("int('x')", "type conversion error from 'string' to 'int'", "int('x')"),
        ("1 +", "expected a value, found the end of the expression", ""),
        ("'abc", "a string that does not end", "'abc"),
        ("a..b", "expected a name, found '.'", "."),
        ("if == 1", "reserved identifier: if", "if"),
        ("9223372036854775808", "invalid int literal: it does not fit 64 bits", "9223372036854775808"),
        ("[1].all(1, true)", "argument must be a simple name", "1"),
        ("has(node)", "invalid argument to has() macro: it takes a selection such as has(a.b)", "node"),
        ("has(node.?cpu)", "has() takes a plain selection: write has(a.b) without the question mark", "node.?cpu"),
    ],
)
def test_messages_and_places(text, message, at):
    (fault, *_) = _faults(text)
    assert message in fault.message
    assert fault.span.text.strip() == at


def test_all_mistakes_are_reported_at_once():
    found = _faults("nod.cpu > 1.0 && node.cpus > 2.0 || count + 'a' == 1")
    assert [fault.code for fault in found] == [Code.UNKNOWN_FIELD, Code.UNKNOWN_FIELD, Code.INVALID]
    assert [fault.span.column for fault in found] == [1, 23, 43]


def test_one_mistake_gives_one_message():
    assert len(_faults("nope.a.b.c + 1 > 2 && nope2 == ''")) == 2


def test_mixed_numbers_are_told_the_way_out():
    assert "write 2.0 instead of 2" in _faults("node.cpu / count")[0].notes[0]


def test_errors_of_evaluation_have_a_place():
    program = compile_expression("1 + params.a / count", ENV)
    error = program.evaluate({"params": {"a": 1}, "count": 0})
    assert (error.message, error.span.text) == ("division by zero", "params.a / count")
    error = program.evaluate({"params": {}, "count": 1})
    assert (error.message, error.span.text) == ("no such key: a", "params.a")


def test_objects_are_read_by_declared_fields_only():
    program = compile_expression("params.__class__", ENV)
    assert program.evaluate({"params": {"a": 1}}).message == "no such key: __class__"
    assert "unsupported value" in program.evaluate({"params": object()}).message


def test_a_missing_binding_is_an_error():
    assert compile_expression("count > 0 || true", ENV).evaluate({}) is True
    assert compile_expression("count > 0", ENV).evaluate({}).message == "no such attribute(s): count"


def test_dialects_differ():
    assert isinstance(compile_expression("cel.bind(x, 1, x + 1)", ENV), Program)
    assert "undeclared reference to 'cel.bind'" in _faults("cel.bind(x, 1, x)", Environment({}, KUBERNETES))[0].message
    assert "undeclared" in _faults("math.abs(-1)", Environment({}, KUBERNETES))[0].message
