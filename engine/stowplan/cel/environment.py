"""What an expression may use: variables with types, functions, and the dialect that decides the fine points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from stowplan.cel import kinds
from stowplan.cel.kinds import Type
from stowplan.cel.library import (
    convert,
    encoders,
    formatting,
    lists,
    mathext,
    moments,
    named_format,
    network,
    numbers,
    optional,
    quantity,
    regex,
    semver,
    strings,
    url,
)
from stowplan.cel.overloads import Function, Overload, functions

_CORE = (
    *numbers.OPERATORS,
    *convert.STANDARD,
    *moments.MOMENTS,
    *strings.CORE,
    *strings.STRINGS,
    *regex.MATCHES,
    *optional.OPTIONAL,
    *lists.LISTS,
    *lists.SETS,
)
_KUBERNETES = (
    *_CORE,
    *strings.LENIENT_INDEX,
    *formatting.FORMAT_KUBERNETES,
    *lists.KUBERNETES_LISTS,
    *regex.REGEX,
    *quantity.QUANTITY,
    *network.KUBERNETES_NETWORK,
    *url.URLS,
    *semver.SEMVER,
    *named_format.FORMAT,
)
_EXTRA = (*mathext.MATH, *encoders.ENCODERS, *strings.REVERSE)


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """A set of overloads and the points in which implementations of CEL differ.

    `homogeneous`: the elements of a list or map literal must have one type. `unique_keys`: a repeated key in a map
    literal is an error, else the last one wins. `bind`: whether cel.bind exists. `eager`: conversions of literals and
    constant patterns are computed when the expression is compiled, so their errors refuse it.
    """

    name: str
    overloads: tuple[Overload, ...]
    homogeneous: bool
    unique_keys: bool
    bind: bool
    eager: bool


SPEC = Dialect(
    "spec",
    (*_CORE, *_EXTRA, *strings.STRICT_INDEX, *formatting.FORMAT, *network.NETWORK),
    homogeneous=False,
    unique_keys=True,
    bind=True,
    eager=False,
)
KUBERNETES = Dialect("kubernetes", _KUBERNETES, homogeneous=True, unique_keys=False, bind=False, eager=True)
DEVICES = Dialect("devices", _KUBERNETES, homogeneous=True, unique_keys=False, bind=True, eager=True)
RULES = Dialect("rules", (*_KUBERNETES, *_EXTRA), homogeneous=True, unique_keys=False, bind=True, eager=True)

COST_LIMIT = 1_000_000  # per evaluation, Kubernetes' PerCallLimit


@lru_cache(maxsize=16)
def _functions(dialect: Dialect, extra: tuple[Overload, ...]) -> dict[tuple[str, bool], Function]:
    return functions((*dialect.overloads, *extra))


_TYPES = {
    name: kinds.PRIMITIVE.get(name) or Type(name, params)
    for name, params in {
        "bool": (), "int": (), "uint": (), "double": (), "string": (), "bytes": (), "null_type": (),
        "google.protobuf.Timestamp": (), "google.protobuf.Duration": (),
        "list": (kinds.DYN,), "map": (kinds.DYN, kinds.DYN), "type": (), "optional_type": (kinds.DYN,),
        **dict.fromkeys(kinds.OPAQUE, ()),
    }.items()
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Environment:
    """Variables by name (a name may hold dots), the dialect, functions beyond it, and the container of names."""

    variables: Mapping[str, Type] = field(default_factory=dict)
    dialect: Dialect = RULES
    extra: tuple[Overload, ...] = ()
    container: str = ""
    cost_limit: int = COST_LIMIT
    estimate_limit: int | None = None  # refuse what may cost more; None: leave it to the budget while running
    sizes: Mapping[tuple[str, ...], int] = field(default_factory=dict)  # greatest lengths by path, for estimates
    constant_errors: bool = False  # refuse what can only fail, as its arguments are literals; else it fails while running

    @property
    def functions(self) -> dict[tuple[str, bool], Function]:
        """All functions by (name, whether a member)."""
        return _functions(self.dialect, self.extra)

    def candidates(self, name: str) -> Iterator[str]:
        """The full names a written name may stand for, the innermost container first."""
        if name.startswith("."):
            yield name[1:]
            return
        parts = self.container.split(".") if self.container else []
        while parts:
            yield ".".join([*parts, name])
            parts.pop()
        yield name

    def variable(self, name: str) -> tuple[str, Type] | None:
        """The variable a written name stands for."""
        return next(((full, self.variables[full]) for full in self.candidates(name) if full in self.variables), None)

    def type_named(self, name: str) -> tuple[str, Type] | None:
        """The type a written name stands for."""
        return next(((full, _TYPES[full]) for full in self.candidates(name) if full in _TYPES), None)

    def function(self, name: str, *, member: bool) -> Function | None:
        """The function of that name in one form."""
        known = self.functions
        if member:
            return known.get((name, True))
        return next((known[full, False] for full in self.candidates(name) if (full, False) in known), None)
