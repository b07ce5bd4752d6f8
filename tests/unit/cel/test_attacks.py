"""Expressions made to use up time or memory are refused or stopped, quickly and within little memory."""

import time
import tracemalloc

import pytest

from stowplan.cel import CelError, Environment, Meter, Program, compile_expression
from stowplan.cel.environment import COST_LIMIT
from stowplan.cel.kinds import DYN

ENV = Environment({"x": DYN, "s": DYN}, estimate_limit=COST_LIMIT)
_SECONDS, _BYTES = 0.1, 50 * 2**20


def _doubling(count, first, step, last):
    text = last.replace("@", f"v{count}")
    for index in range(count, 0, -1):
        text = f"cel.bind(v{index}, {step.replace('@', f'v{index - 1}')}, {text})"
    return f"cel.bind(v0, {first}, {text})"


ATTACKS = {
    "parentheses": "(" * 200 + "1" + ")" * 200,
    "brackets": "[" * 300 + "]" * 300,
    "negations": "!!((" * 39,
    "terms": " || ".join(["x"] * 5000),
    "sum": "+".join(["1"] * 5000),
    "selections": "x" + ".a" * 3000,
    "big list": "[" + ",".join(["1"] * 100_000) + "]",
    "long": "'" + "a" * 20_000 + "'",
    "six nested loops": "".join(f"[0,1,2,3,4,5,6,7,8,9].all(v{i}, " for i in range(6)) + "true" + ")" * 6,
    "unknown nested loops": "x.all(a, x.all(b, x.all(c, x.all(d, a == b && c == d))))",
    "growing replace": "s" + ".replace('a', 'aaaaaaaaaa')" * 12,
    "doubling strings": _doubling(30, "s + s", "@ + @", "size(@)"),
    "doubling lists": _doubling(30, "[s, s]", "@ + @", "size(@)"),
    "doubling parts, compared": _doubling(30, "[s, s]", "[@, @]", "@ == dyn([@, @])[0]"),
    "doubling parts, printed": _doubling(30, "[s, s]", "[@, @]", "'%s'.format([@])"),
    "doubling maps": _doubling(30, "{'a': s}", "{'a': @, 'b': @}", "@ == dyn({'a': @}).a"),
    "range": "lists.range(100000000).size()",
    "range chain": "lists.range(100000)" + ".reverse()" * 60 + ".size()",
    "ranges in a loop": "x.all(a, lists.range(99999).size() > a)",
    "quadratic": "lists.range(30000).map(i, [i]).distinct().size()",
    "repetition": "s.matches('((a{1,100}){1,100}){1,100}')",
    "backtracking": "s.matches('^(a+)+$')",
    "long pattern": "s.matches('" + "a?" * 600 + "')",
    "flatten": _doubling(25, "[s, s]", "[@, @]", "@.flatten(40).size()"),
    "join": "lists.range(90000).map(i, 'aaaaaaaaaa').join().size()",
    "huge number": "s == '' || int('" + "9" * 5000 + "') > 0",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_attacks(name):
    bindings = {"x": list(range(400)), "s": "a" * 1000 + "!"}
    compile_expression("1", ENV)
    started = time.process_time()
    program = compile_expression(ATTACKS[name], ENV)
    outcome = program.evaluate(bindings) if isinstance(program, Program) else program
    spent = time.process_time() - started
    tracemalloc.start()
    program = compile_expression(ATTACKS[name], ENV)
    if isinstance(program, Program):
        program.evaluate(bindings)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < _BYTES
    assert spent < _SECONDS * 3  # a busy machine; it takes a third of that at most when idle
    assert name == "backtracking" or not isinstance(program, Program) or isinstance(outcome, CelError), outcome


def test_a_used_up_budget_is_not_absorbed():
    program = compile_expression("x.all(a, x.all(b, a + b >= 0)) || true", Environment({"x": DYN}))
    assert program.evaluate({"x": list(range(600))}).message == "operation cancelled: actual cost limit exceeded"
    meter = Meter(COST_LIMIT)
    assert program.evaluate({"x": [1, 2]}, meter) is True
    assert 10 < meter.spent < 100


def test_an_interruption_ends_loops():
    program = compile_expression("x.all(a, a >= 0) || true", Environment({"x": DYN}))
    assert program.evaluate({"x": list(range(1000))}, Meter(COST_LIMIT, lambda: True)).message == "operation interrupted"
    assert program.evaluate({"x": list(range(1000))}, Meter(COST_LIMIT, lambda: False)) is True
