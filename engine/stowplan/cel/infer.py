"""Which type fits where: substitution of type variables and assignability, as cel-go's checker defines them."""

from __future__ import annotations

from collections.abc import Sequence

from stowplan.cel import kinds
from stowplan.cel.kinds import DYN, Type, is_dyn

_NULLABLE = frozenset(("null_type", "timestamp", "duration"))
_FLAT = frozenset(("bool", "int", "uint", "double", "string", "bytes", "timestamp", "duration"))


class Inference:
    """The type variables of one expression and what they stand for."""

    def __init__(self) -> None:
        self.known: dict[str, Type] = {}
        self._count = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self._count += 1
        return Type(f"<_var{self._count}>")

    def instance(self, types: Sequence[Type], names: frozenset[str]) -> list[Type]:
        """The types with fresh variables for their type parameters."""
        if not names:
            return list(types)
        fresh = {name: self.fresh() for name in names}
        return [_replace(kind, fresh) for kind in types]

    def resolve(self, kind: Type, *, final: bool = False) -> Type:
        """The type with every known variable replaced; `final` makes the unknown ones dyn."""
        if kind.is_param:
            known = self.known.get(kind.name)
            if known is not None:
                return self.resolve(known, final=final)
            return DYN if final else kind
        if not kind.params:
            return kind
        params = tuple(self.resolve(param, final=final) for param in kind.params)
        return kind if params == kind.params else Type(kind.name, params)

    def fits(self, found: Sequence[Type], wanted: Sequence[Type]) -> bool:
        """Whether all types are assignable; what that says about variables is kept only if all are."""
        if len(found) != len(wanted):
            return False
        before = dict(self.known)
        if all(self._assignable(a, b) for a, b in zip(found, wanted, strict=True)):
            return True
        self.known = before
        return False

    def join(self, previous: Type, current: Type) -> Type | None:
        """The more general of two types that fit each other, else None."""
        return _general(previous, current) if self.fits([previous], [current]) else None

    def _assignable(self, a: Type, b: Type) -> bool:  # noqa: PLR0911 - the rules in their order
        if b.is_param:
            valid, bound = self._substitute(a, b)
            if valid or bound:
                return valid
        if a.is_param:
            return self._substitute(b, a)[0]
        if is_dyn(a) or is_dyn(b):
            return True
        if a.name == "null_type":
            return _nullable(b)
        if b.name == "null_type":
            return _nullable(a)
        if a.name == "type":
            return b.name == "type"
        if a.name != b.name or len(a.params) != len(b.params):
            return False
        return all(self._assignable(x, y) for x, y in zip(a.params, b.params, strict=True))

    def _substitute(self, a: Type, variable: Type) -> tuple[bool, bool]:
        """Whether `a` can stand for the variable, and whether the variable stood for something already."""
        if a == variable:
            return True, True
        known = self.known.get(variable.name)
        if known is not None:
            if a == known:
                return True, True
            if self._assignable(a, known):
                general = _general(a, known)
                if self._free_of(general, variable):
                    self.known[variable.name] = general
                return True, True
            return False, True
        if self._free_of(a, variable):
            self.known[variable.name] = a
            return True, False
        return False, False

    def _free_of(self, kind: Type, variable: Type) -> bool:
        """Whether the variable does not occur in the type."""
        if kind == variable:
            return False
        if kind.is_param:
            known = self.known.get(kind.name)
            return known is None or self._free_of(known, variable)
        return all(self._free_of(param, variable) for param in kind.params)


def _replace(kind: Type, fresh: dict[str, Type]) -> Type:
    if kind.is_param:
        return fresh.get(kind.name, kind)
    if not kind.params:
        return kind
    return Type(kind.name, tuple(_replace(param, fresh) for param in kind.params))


def _nullable(kind: Type) -> bool:
    """Types whose variables may hold null: everything but plain values, lists and maps."""
    if kind.name in _NULLABLE:
        return True
    return kind.name not in _FLAT and kind.name not in ("list", "map", "type")


def _general(a: Type, b: Type) -> Type:
    return a if _not_narrower(a, b) else b


def _not_narrower(a: Type, b: Type) -> bool:
    """Whether `a` says no more than `b`."""
    if is_dyn(a) or a.is_param:
        return True
    if is_dyn(b) or b.is_param or a.name != b.name or len(a.params) != len(b.params):
        return False
    return a.name == "type" or all(_not_narrower(x, y) for x, y in zip(a.params, b.params, strict=True))


def unwrap_optional(kind: Type) -> tuple[Type, bool]:
    """The type inside an optional, and whether it was one."""
    return (kind.params[0], True) if kind.name == "optional_type" else (kind, False)


def iterates(kind: Type) -> tuple[Type, Type] | None:
    """Key (or index) and value type of what a comprehension walks; None if it cannot."""
    if kind.name == "list":
        return kinds.INT, kind.params[0]
    if kind.name == "map":
        return kind.params[0], kind.params[1]
    return (DYN, DYN) if is_dyn(kind) or kind.is_param else None
