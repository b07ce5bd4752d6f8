"""Runs files of CEL test vectors: `python tests/cel/conformance.py FILE.json.gz ...`.

Takes cel-spec's tests (`.json` with `tests`) and vectors of Kubernetes' environment (JSON lines). Prints the passes of
every source file and every failure; exit code 0 only when each test passes that is not listed in `exceptions.txt`.
Tests that need protobuf messages are skipped. An expected error must be one of evaluation or of the checker, not an
unknown function; for Kubernetes it also has to come at the same time.
"""

import collections
import gzip
import json
import pathlib
import sys

from stowplan.cel import KUBERNETES, SPEC, CelError, Environment, Program, compile_expression, compile_unchecked, parse_type
from stowplan.cel.kinds import DYN
from stowplan.cel.overloads import declare

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from tagged import decode, encode, normal

EXCEPTIONS = pathlib.Path(__file__).with_name("exceptions.txt")
_UNKNOWN = ("undeclared reference", "unbound function")
_MAY_BE_UNKNOWN = ("undeclared", "unbound", "unknown variable")


def load(path):
    """(dialect, tests) of a file."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8") as file:
        text = file.read()
    if ".jsonl" in pathlib.Path(path).name:
        return KUBERNETES, [json.loads(line) for line in text.splitlines()]
    return SPEC, json.loads(text)["tests"]


def environment(test, dialect):
    """The environment a test declares; bindings without a type are dyn."""
    variables, extra = {}, []
    for entry in test.get("type_env") or []:
        if "type" in entry:
            variables[entry["name"]] = parse_type(entry["type"])
        extra += [_overload(entry["name"], overload) for overload in entry.get("overloads", [])]
    for name in test.get("bindings") or {}:
        variables.setdefault(name, DYN)
    return Environment(variables, dialect, tuple(extra), test.get("container", ""))


def _overload(name, overload):
    params = list(overload["params"])
    receiver = f"{params.pop(0)}." if overload["member"] else ""
    return declare(f"{receiver}{name}({', '.join(params)}) -> {overload['result']}", lambda *_: None)


def outcome(test, dialect):
    """("value", tagged) or ("error" or "check_error", text), and the deduced type."""
    make = compile_unchecked if test.get("disable_check") else compile_expression
    program = make(test["expr"], environment(test, dialect))
    if not isinstance(program, Program):
        return "check_error", program[0].message, None
    if test.get("check_only"):
        return "checked", None, str(program.type)
    value = program.evaluate({name: decode(value) for name, value in (test.get("bindings") or {}).items()})
    if isinstance(value, CelError):
        return "error", value.message, str(program.type)
    return "value", encode(value), str(program.type)


def fault(test, dialect):
    """Why the test fails, None if it passes."""
    expect = test["expect"]
    what, got, kind = outcome(test, dialect)
    shown = f"{what} {json.dumps(got, ensure_ascii=False)}"
    if dialect is KUBERNETES:
        wanted = next(iter(expect))
        if what != wanted or (what == "value" and got != normal(expect["value"])):
            return f"got {shown}, wanted {json.dumps(expect, ensure_ascii=False)}"
        return _type_fault(kind, test.get("type")) if what != "check_error" else None
    if "error" in expect:
        unknown = any(word in str(got) for word in _UNKNOWN)
        allowed = any(word in text for text in expect["error"] for word in _MAY_BE_UNKNOWN)
        right = what in ("error", "check_error") and (allowed or not unknown)
        return None if right else f"got {shown}, wanted an error: {expect['error']}"
    if "value" in expect and what != "checked" and (what != "value" or got != normal(expect["value"])):
        return f"got {shown}, wanted {json.dumps(normal(expect['value']), ensure_ascii=False)}"
    return (f"got {shown}" if what == "check_error" else None) or _type_fault(kind, expect.get("type"))


def _type_fault(kind, wanted):
    if wanted is None or kind is None or parse_type(_plain(kind)) == parse_type(_plain(wanted)):
        return None
    return f"type {kind}, wanted {wanted}"


def _plain(kind):
    return kind[8:-1] if kind.startswith("wrapper(") else kind.replace("null_type", "null")


def exceptions():
    """The listed exceptions: (prefix of an identity, reason)."""
    found = []
    for line in EXCEPTIONS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(" :: ")
            assert reason.strip(), f"no reason given for {name}"
            found.append(name)
    return found


def identity(test):
    """What exceptions name: the id, for Kubernetes' vectors with the expression."""
    return f"{test['id']} {test['expr']}" if "/" in test["id"] and "file" not in test else test["id"]


def run(path, listed):
    """(passes, failures, exceptions, skipped) by source file, printed as it goes."""
    dialect, tests = load(path)
    counts = collections.defaultdict(collections.Counter)
    for test in tests:
        name = test.get("file") or pathlib.Path(path).name.split(".")[0]
        if "proto" in test.get("tags", []):
            counts[name]["skipped"] += 1
            continue
        try:
            why = fault(test, dialect)
        except Exception as error:  # noqa: BLE001  (a crash is a failure like any other)
            why = f"{type(error).__name__}: {error}"
        if why is None:
            counts[name]["passed"] += 1
        elif any(identity(test).startswith(name) for name in listed):
            counts[name]["excepted"] += 1
        else:
            counts[name]["failed"] += 1
            print(f"FAIL {identity(test)}\n     {test['expr'][:300]}\n     {why[:600]}")
    return counts


def main(paths):
    """Runs all files; the exit code."""
    listed = exceptions()
    failed = 0
    for path in paths:
        for name, count in sorted(run(path, listed).items()):
            total = sum(count.values()) - count["skipped"]
            notes = [f"{count[key]} {key}" for key in ("excepted", "failed", "skipped") if count[key]]
            print(f"{name:24} {count['passed']:5} of {total:5}  {', '.join(notes)}")
            failed += count["failed"]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
