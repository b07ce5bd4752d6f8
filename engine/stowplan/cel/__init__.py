"""CEL, the Common Expression Language: expression text -> typed tree -> plan, evaluated for a row or for columns."""

from stowplan.cel.environment import DEVICES, KUBERNETES, RULES, SPEC, Dialect, Environment
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Struct, Type, parse_type
from stowplan.cel.meter import Meter
from stowplan.cel.program import Program, compile_expression, compile_unchecked

__all__ = [
    "DEVICES",
    "KUBERNETES",
    "RULES",
    "SPEC",
    "CelError",
    "Dialect",
    "Environment",
    "Meter",
    "Program",
    "Struct",
    "Type",
    "compile_expression",
    "compile_unchecked",
    "parse_type",
]
