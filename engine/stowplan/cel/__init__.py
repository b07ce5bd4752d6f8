"""CEL, the Common Expression Language: expression text -> typed tree -> plan, evaluated for a row or for columns.

`compile_expression(text, Environment(variables, dialect))` gives a `Program` or diagnostics. A program gives one value
(`evaluate`, with a `CelError` as a value), a column of values (`evaluate_rows`), the paths it reads (`touches`) and what it
may cost (`estimate`). Dialects: `RULES` (everything), `KUBERNETES` (the API server's environment of 1.37), `DEVICES` (that
with cel.bind) and `SPEC` (cel-spec). `device` has the selectors of dynamic resource allocation.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stowplan.cel.column import Rows, View
    from stowplan.cel.environment import DEVICES, KUBERNETES, RULES, SPEC, Dialect, Environment
    from stowplan.cel.errors import CelError
    from stowplan.cel.estimate import Estimate
    from stowplan.cel.kinds import Struct, Type, parse_type
    from stowplan.cel.meter import Meter
    from stowplan.cel.program import Answer, Program, compile_expression, compile_unchecked

_HOMES = {
    "column": ("Rows", "View"),
    "environment": ("DEVICES", "KUBERNETES", "RULES", "SPEC", "Dialect", "Environment"),
    "errors": ("CelError",),
    "estimate": ("Estimate",),
    "kinds": ("Struct", "Type", "parse_type"),
    "meter": ("Meter",),
    "program": ("Answer", "Program", "compile_expression", "compile_unchecked"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """The language is imported when something of it is used: most commands need none, and start-up counts."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


__all__ = [
    "DEVICES",
    "KUBERNETES",
    "RULES",
    "SPEC",
    "Answer",
    "CelError",
    "Dialect",
    "Environment",
    "Estimate",
    "Meter",
    "Program",
    "Rows",
    "Struct",
    "Type",
    "View",
    "compile_expression",
    "compile_unchecked",
    "parse_type",
]
