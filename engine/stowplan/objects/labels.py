"""Labels and label selectors: the one definition of "this selector matches those labels".

Every operator of every kind of selector (In, NotIn, Exists, DoesNotExist, Gt, Lt) becomes one normal form, `Requirement`,
and nothing else in the program decides whether a label value is accepted.

Upstream: `labels.Requirement.Matches` and `metav1.LabelSelectorAsSelector` of k8s.io/apimachinery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import msgspec

from stowplan.objects import wire
from stowplan.objects.errors import ObjectError
from stowplan.objects.frozenmap import FrozenMap

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT64 = 2**63


class Labels(FrozenMap[str]):
    """A label set, interned: equal label sets are the same object. `Labels.of(mapping)` makes one."""

    __slots__ = ()

    EMPTY: ClassVar[Labels]


Labels.EMPTY = Labels.of({})


def integer(text: str) -> int | None:
    """strconv.ParseInt(text, 10, 64): an optional sign and digits that fit int64; None otherwise."""
    if len(text) > 100 or not _INTEGER.fullmatch(text):
        return None
    number = int(text)
    return number if -_INT64 <= number < _INT64 else None


@dataclass(frozen=True, slots=True)
class Requirement:
    """What one label key must look like: the normal form of all selector operators.

    A present value is accepted if it is in `values` (or is not, with `complement`) and, where a bound is set, is an int64
    greater than `above` or less than `below`. An absent key is accepted if `missing`.
    """

    key: str
    values: frozenset[str] = frozenset()
    complement: bool = False
    missing: bool = False
    above: int | None = None
    below: int | None = None

    def accepts(self, value: str | None) -> bool:
        """Is this value of the key accepted? None stands for "the key is absent"."""
        if value is None:
            return self.missing
        if (value in self.values) == self.complement:
            return False
        if self.above is None and self.below is None:
            return True
        number = integer(value)
        if number is None:
            return False
        return (self.above is None or number > self.above) and (self.below is None or number < self.below)

    def matches(self, labels: Mapping[str, str]) -> bool:
        return self.accepts(labels.get(self.key))

    def order(self) -> tuple[Any, ...]:
        """A sort key that makes equal conjunctions equal tuples."""
        return self.key, self.complement, self.missing, sorted(self.values), self.above or 0, self.below or 0

    def __str__(self) -> str:
        if self.above is not None or self.below is not None:
            return f"{self.key} > {self.above}" if self.above is not None else f"{self.key} < {self.below}"
        if not self.values:
            return f"!{self.key}" if self.missing else self.key
        return f"{self.key} {'notin' if self.complement else 'in'} ({', '.join(sorted(self.values))})"


def requirement(key: str, operator: str, values: Iterable[str]) -> Requirement | None:
    """The normal form of one operator; None if there is no such operator."""
    chosen = frozenset(values)
    match operator:
        case "In":
            return Requirement(key, chosen)
        case "NotIn":
            return Requirement(key, chosen, complement=True, missing=True)
        case "Exists":
            return Requirement(key, complement=True)
        case "DoesNotExist":
            return Requirement(key, missing=True)
        case "Gt" | "Lt":
            return _bound(key, operator, chosen)
    return None


def _bound(key: str, operator: str, values: frozenset[str]) -> Requirement:
    """The normal form of Gt or Lt; a bound that is not one int64 accepts nothing."""
    bound = integer(next(iter(values))) if len(values) == 1 else None
    if bound is None:
        return Requirement(key)
    if operator == "Gt":
        return Requirement(key, complement=True, above=bound)
    return Requirement(key, complement=True, below=bound)


@dataclass(frozen=True, slots=True)
class Selector:
    """A conjunction of requirements; `nothing` marks the selector that matches no object (a nil LabelSelector)."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    NOTHING: ClassVar[Selector]
    EVERYTHING: ClassVar[Selector]

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self.nothing:
            return False
        for requirement in self.requirements:  # noqa: SIM110 - called for every pod, and all() is slower
            if not requirement.accepts(labels.get(requirement.key)):
                return False
        return True

    @property
    def empty(self) -> bool:
        """Matches everything, for having no requirement (upstream `Selector.Empty`)."""
        return not self.requirements and not self.nothing

    def with_(self, *requirements: Requirement) -> Selector:
        """A selector that also wants these requirements."""
        if self.nothing or not requirements:
            return self
        return conjunction((*self.requirements, *requirements))

    def __str__(self) -> str:
        return "<nothing>" if self.nothing else ", ".join(map(str, self.requirements)) or "<everything>"


Selector.NOTHING = Selector(nothing=True)
Selector.EVERYTHING = Selector()


def conjunction(requirements: Iterable[Requirement]) -> Selector:
    """The selector that wants all of these; their order and repetition make no difference to equality."""
    return Selector(tuple(sorted(set(requirements), key=Requirement.order)))


def match_labels(mapping: Mapping[str, str]) -> tuple[Requirement, ...]:
    """`nodeSelector`, `matchLabels` or a Service selector as requirements, ordered by key."""
    return tuple(Requirement(key, frozenset({mapping[key]})) for key in sorted(mapping))


def label_selector(selector: wire.LabelSelector | Mapping[str, Any] | None, path: str = "") -> Selector:
    """A metav1.LabelSelector: nil matches nothing, `{}` matches everything.

    ObjectError (below `path`) for an operator other than In, NotIn, Exists and DoesNotExist, or for wrong types.
    """
    if selector is None:
        return Selector.NOTHING
    if not isinstance(selector, wire.LabelSelector):
        try:
            selector = msgspec.convert(selector, wire.LabelSelector)
        except msgspec.ValidationError as error:
            raise wire.fault(error, path) from None
    wanted = list(match_labels(wire.texts(selector.match_labels)))
    for index, expression in enumerate(selector.match_expressions or ()):
        made = requirement(expression.key or "", expression.operator or "", expression.values or ())
        if made is None or expression.operator in ("Gt", "Lt"):
            place = f"{path}.matchExpressions[{index}].operator".lstrip(".")
            known = "In, NotIn, Exists, DoesNotExist"
            raise ObjectError(place, f'"{expression.operator or ""}" is not a label selector operator ({known})')
        wanted.append(made)
    return conjunction(wanted)
