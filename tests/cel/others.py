"""Other implementations of CEL as second opinions: cel-expr-python and cel-python on the cases of `generated`."""

import datetime as dt
import math
import re

from generated import VARIABLES

from stowplan.cel import SPEC, CelError, Environment, Program, compile_expression, parse_type
from stowplan.cel.values import Duration, Timestamp, TypeValue, UInt, as_key, from_key
from stowplan.edge import secondopinion

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
ERROR = "error"
_UNORDERED = "NaN values cannot be ordered"
"""cel-go's error, and so ours; cel-cpp and cel-python find NaN neither less nor greater than anything"""
ENV = Environment({name: parse_type(kind) for name, kind in VARIABLES.items()}, SPEC)


def ours(text, values):
    """The plain value of an expression, or ERROR; None where the others are known to differ."""
    program = compile_expression(text, ENV)
    if not isinstance(program, Program):
        return ERROR
    found = program.evaluate({name: _ours(VARIABLES[name], value) for name, value in values.items()})
    if isinstance(found, CelError):
        return None if found.message == _UNORDERED else ERROR
    return plain(found)


def _ours(kind, value):
    if kind.startswith("map("):
        return {as_key(key): item for key, item in value.items()}
    return {"uint": UInt, "timestamp": Timestamp, "duration": Duration}.get(kind, lambda same: same)(value)


def plain(value):
    """A value of ours with the type's name, so that what differs looks different."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(plain(from_key(key))): plain(item) for key, item in value.items()}
    if isinstance(value, (Timestamp, Duration)):
        return type(value).__name__, value.ns
    if isinstance(value, TypeValue):
        return "type", value.name
    if isinstance(value, float):
        return "double", repr(value) if not math.isnan(value) else "nan"
    return ("uint", int(value)) if isinstance(value, UInt) else (type(value).__name__, value)


class CelCpp:
    """cel-expr-python."""

    def __init__(self):
        from cel_expr_python import cel  # noqa: PLC0415 - a test dependency
        from cel_expr_python.ext import ext_bindings, ext_encoders, ext_math, ext_optional, ext_strings  # noqa: PLC0415

        extensions = [
            ext_bindings.ExtBindings(), ext_encoders.ExtEncoders(), ext_math.ExtMath(),
            ext_optional.ExtOptional(), ext_strings.ExtStrings(),
        ]  # fmt: skip
        simple = {name.lower(): getattr(cel.Type, name) for name in ("INT", "UINT", "DOUBLE", "STRING", "BOOL", "BYTES")}
        simple |= {"timestamp": cel.Type.TIMESTAMP, "duration": cel.Type.DURATION}

        def kind(text):
            if text.startswith("list("):
                return cel.Type.List(kind(text[5:-1]))
            if text.startswith("map("):
                return cel.Type.Map(*(kind(part) for part in text[4:-1].split(", ")))
            return simple[text]

        self._cel = cel
        self._env = cel.NewEnv(variables={name: kind(text) for name, text in VARIABLES.items()}, extensions=extensions)

    def __call__(self, text, values):
        """The plain value of an expression, or ERROR."""
        try:
            value = self._env.compile(text).eval(data={name: self._given(name, value) for name, value in values.items()})
            return self._plain(value)
        except (RuntimeError, ValueError, TypeError, OverflowError):
            return ERROR

    def _given(self, name, value):
        kind = VARIABLES[name]
        if kind == "timestamp":
            return _EPOCH + dt.timedelta(microseconds=value // 1000)
        return dt.timedelta(microseconds=value // 1000) if kind == "duration" else value

    def _plain(self, value):  # noqa: PLR0911 - a line a type
        kind, found = value.type(), value.value()
        if kind == self._cel.Type.ERROR:
            return ERROR
        if isinstance(found, list):
            return [self._plain(item) for item in found]
        if isinstance(found, dict):
            return {str(("str", key)): self._plain(item) for key, item in found.items()}
        if isinstance(found, dt.datetime):
            return "Timestamp", _microseconds(found.replace(tzinfo=dt.UTC) - _EPOCH)
        if isinstance(found, dt.timedelta):
            return "Duration", _microseconds(found)
        if isinstance(found, float):
            return "double", repr(found) if not math.isnan(found) else "nan"
        if isinstance(found, bytearray):
            return "bytes", bytes(found)
        return ("uint" if kind == self._cel.Type.UINT else type(found).__name__), found


def _microseconds(span):
    return (span.days * 86400 + span.seconds) * 10**9 + span.microseconds * 1000


FAULTS = {
    r"math\.|base64\.|\[\?|\.(indexOf|lastIndexOf|replace|substring|lowerAscii|upperAscii|trim|charAt|join|split|format)\(":
        "it has the standard library alone",
    r"dyn\(": "values of two types are an error to compare, by order or for equality, and not unequal",
    r"string\(§bool§": "a bool is written as Python does, True",
    r"bool\(§string§": "any text but false and the like is true, where CEL takes a few words only",
    r"timestamp\(0": "it makes no moment of an int",
    r"int\(§timestamp§": "seconds before 1970 are rounded up instead of down",
    r"§duration§ - ": "the difference of two durations has lost the functions of a duration",
    r"§string§\.contains": "two texts joined by + have lost it",
    r"§list\((int|string)\)§\[§int": "a negative index counts from the end",
    r"§double§ / ": "the sign of a zero that divides is lost",
    r"int\(§double§": "the double -2^63 is taken for an int, which cel-go and cel-cpp refuse",
    r"exists_one\(": "an error in it is not absorbed by && and ||",
    r"\{.*§": "an error in an entry of a map is a value",
}  # fmt: skip
"""What cel-python 0.5 is known to do otherwise, by the forms of `generated` in which it shows: they are left out."""
_UNFIT = re.compile("|".join(FAULTS))


class CelPython:
    """cel-python, as `stowplan eval --engine cel-python` asks it."""

    def __init__(self):
        import celpy  # noqa: PLC0415 - an extra

        self._types, self._failure = celpy.celtypes, celpy.CELEvalError
        self._env = celpy.Environment()

    @staticmethod
    def fits(form):
        """Whether cel-python knows all that a form or literal has."""
        return not _UNFIT.search(form)

    def __call__(self, text, values):
        """The plain value of an expression, or ERROR."""
        given = {name: secondopinion.theirs(self._types, _ours(VARIABLES[name], value)) for name, value in values.items()}
        try:
            found = self._env.program(self._env.compile(text)).evaluate(given)
        except (self._failure, ArithmeticError):  # it lets some of Python's own pass
            return ERROR
        return plain(secondopinion.ours(self._types, found))
