"""The cost an expression can have at most, before it runs, and which part of it is to blame.

Units are Kubernetes'. Sizes come from the environment: how many elements a list or map at a path has at most, how long a
string is. What nobody declared is taken for a default, so the estimate is a bound only as far as the sizes are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from stowplan.cel.check import Checked
from stowplan.cel.cost import MAKE, PATTERN, loop_units
from stowplan.cel.kinds import Type
from stowplan.cel.touches import ELEMENT, Path
from stowplan.cel.tree import Bind, Call, Choice, Const, Fold, Ident, ListOf, Logic, MapOf, Node, OptMap, Select

STRING, LIST, MAP = 256, 128, 64  # sizes of what nobody declared
_MOST = 2**62
_SPLITS = frozenset(("replace", "split", "join", "+", "_+_"))
_PATTERNS = frozenset(("matches", "find", "findAll", "validate"))
_WHOLE = frozenset(
    (
        "sum",
        "min",
        "max",
        "isSorted",
        "indexOf",
        "lastIndexOf",
        "includes",
        "@in",
        "distinct",
        "sort",
        "reverse",
        "flatten",
        "slice",
    )
)
_TEXTS = frozenset(("quantity", "isQuantity", "semver", "isSemver", "ip", "isIP", "cidr", "isCIDR", "url", "isURL", "timestamp"))


@dataclass(frozen=True, slots=True)
class Estimate:
    """Units at most, and the smallest part of the expression that makes up more than half of them."""

    units: int
    dearest: Node


@dataclass(frozen=True, slots=True)
class _Size:
    """How large a value is at most, where it comes from, and the same of its elements."""

    length: int = 1
    path: Path | None = None
    element: _Size | None = None


def estimate(checked: Checked, sizes: Mapping[Path, int]) -> Estimate:
    """The highest cost of one evaluation; `sizes` by path, elements written as in `touches`."""
    sizer = _Estimator(checked, sizes)
    sizer.visit(checked.root, {})
    total = sizer.units[checked.root]
    node = checked.root
    while True:
        child = max(node.children(), key=lambda part: sizer.units.get(part, 0), default=None)
        if child is None or sizer.units.get(child, 0) * 2 <= total:
            return Estimate(total, node)
        node = child


class _Estimator:
    def __init__(self, checked: Checked, sizes: Mapping[Path, int]) -> None:
        self.checked = checked
        self.sizes = sizes
        self.units: dict[Node, int] = {}  # of a node with all it holds, as often as it runs
        self.times = 1

    def visit(self, node: Node, scope: Mapping[str, _Size]) -> _Size:
        """The size of the value; the units of the node are noted."""
        times = self.times
        if isinstance(node, Fold):
            own, size = self.fold(node, scope)
        elif isinstance(node, (Bind, OptMap)):
            own, size = self.bound(node, scope)
        else:
            parts = [self.visit(child, scope) for child in self.parts(node)]
            own, size = self.own(node, parts, scope)
        inner = self.below(node)
        self.units[node] = min(_MOST, own * times + inner)
        return size

    def parts(self, node: Node) -> tuple[Node, ...]:
        """What is evaluated for the node: its target may be part of a name only."""
        if node in self.checked.variables or node in self.checked.named_types:
            return ()
        return node.args if isinstance(node, Call) and node in self.checked.global_calls else node.children()

    def below(self, node: Node) -> int:
        units = [self.units[child] for child in self.parts(node)]
        if isinstance(node, Choice):
            return units[0] + max(units[1:])
        return sum(units)

    def own(self, node: Node, parts: list[_Size], scope: Mapping[str, _Size]) -> tuple[int, _Size]:  # noqa: PLR0911 - a line a kind
        kind = self.checked.types[node]
        name = self.checked.variables.get(node)
        if name is not None:
            return 1, self.sized(kind, (name,))
        if isinstance(node, Const):
            return 0, _Size(len(node.value) if isinstance(node.value, (str, bytes)) else 1)
        if isinstance(node, Ident):
            return 1, scope.get(node.name, _Size())
        if isinstance(node, Select):
            below = None if parts[0].path is None else (*parts[0].path, node.field)
            return (0, _Size()) if node.test else (1, self.sized(kind, below))
        if isinstance(node, (ListOf, MapOf)):
            element = max(parts, key=lambda part: part.length, default=_Size())
            return MAKE[type(node)], _Size(len(node.children()), None, element)
        if isinstance(node, Call):
            return self.call(node, parts, kind)
        if isinstance(node, Choice):
            return 0, max(parts[1:], key=lambda part: part.length)
        return (0 if isinstance(node, Logic) else MAKE.get(type(node), 1)), self.sized(kind, None)

    def sized(self, kind: Type, path: Path | None) -> _Size:
        """What is known about a value of that type at that path."""
        length = self.sizes.get(path) if path is not None else None
        if kind.name in ("list", "map"):
            inner = self.sized(kind.params[-1], None if path is None else (*path, ELEMENT))
            return _Size(length or (LIST if kind.name == "list" else MAP), path, inner)
        if kind.name == "optional_type":
            return self.sized(kind.params[0], path)
        return _Size(length or (STRING if kind.name in ("string", "bytes", "dyn") else 1), path)

    def call(self, node: Call, parts: list[_Size], kind: Type) -> tuple[int, _Size]:  # noqa: PLR0911 - a line a rule
        name = node.function
        first = parts[0] if parts else _Size()
        last = parts[-1] if parts else _Size()
        if name in ("_[_]", "_[?_]"):
            return 1, self.element(node, first, kind)
        if name == "range" and node.args and isinstance(node.args[0], Const):
            count = max(0, int(node.args[0].value))
            return 1 + count, _Size(count, None, _Size())
        if name in _PATTERNS:
            pattern = parts[1] if len(parts) > 1 else last
            made = 0 if len(node.children()) < 2 or isinstance(self.parts(node)[1], Const) else PATTERN
            return ceil((first.length + 1) * 0.1) * ceil(pattern.length * 0.25) + made, self.sized(kind, None)
        if name == "contains":
            return ceil(first.length * 0.1 * last.length * 0.1), _Size()
        if name in _WHOLE:
            whole = last if name == "@in" else first
            return max(1, whole.length), first if kind.name == "list" else whole.element or _Size()
        if name in _SPLITS or name == "format":
            made = self.joined(name, parts)
            return 1 + ceil(made * 0.2), _Size(made, None, _Size(first.length) if kind.name == "list" else None)
        if name in ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"):
            return max(1, ceil(min(first.length, last.length) * 0.1)), _Size()
        if name in ("startsWith", "endsWith"):
            return ceil(last.length * 0.1), _Size()
        if name in _TEXTS:
            return ceil(first.length * 0.1) or 1, self.sized(kind, None)
        return 1, first if kind.name in ("string", "list") and parts else self.sized(kind, None)

    @staticmethod
    def joined(name: str, parts: list[_Size]) -> int:
        lengths = [part.length for part in parts]
        if name == "replace" and len(lengths) > 2:
            return min(_MOST, lengths[0] * max(1, lengths[2]))
        if name in ("join", "format"):
            element = parts[-1].element if name == "format" else parts[0].element
            return min(_MOST, sum(lengths) * max(1, element.length if element else 1))
        return min(_MOST, sum(lengths))

    def element(self, node: Call, container: _Size, kind: Type) -> _Size:
        key = node.args[1]
        if container.path is not None and isinstance(key, Const) and isinstance(key.value, str):
            return self.sized(kind, (*container.path, key.value))
        return container.element or self.sized(kind, None if container.path is None else (*container.path, ELEMENT))

    def fold(self, node: Fold, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
        source = self.visit(node.source, scope)
        steps = max(0, source.length)
        if source.element is None and self.checked.types[node.source].name not in ("list", "map"):
            steps = LIST
        element = source.element or _Size(STRING, None if source.path is None else (*source.path, ELEMENT))
        inner = {**scope, **dict.fromkeys(node.names, element)}
        before, self.times = self.times, min(_MOST, self.times * steps)
        result = [self.visit(part, inner) for part in node.children()[1:]][-1]
        self.times = before
        keeps = node.kind in ("filter", "sortBy")
        made = _Size(steps, None, element if keeps else result)
        return 1 + steps * loop_units(node), made if self.checked.types[node].name != "bool" else _Size()

    def bound(self, node: Bind | OptMap, scope: Mapping[str, _Size]) -> tuple[int, _Size]:
        source = node.value if isinstance(node, Bind) else node.source
        inner = {**scope, node.name: self.visit(source, scope)}
        return 1, self.visit(node.body, inner)
