"""The table of overloads: what the checker resolves, the planner calls and the reference page lists.

An overload is declared by its signature as text (`string.charAt(int) -> string`), the kernel that computes it for one
set of values, one sentence, and, where NumPy can, the same for arrays. A kernel gets values of the declared types and
raises CelError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from stowplan.cel import kinds
from stowplan.cel.errors import no_overload
from stowplan.cel.kinds import Type, parse_type, split_types
from stowplan.cel.values import kind_of

Kernel = Callable[..., Any]
_SIZED = frozenset(("string", "bytes", "list"))
_FLAT = frozenset(("size", "charAt", "startsWith", "endsWith", "first", "last", "_[_]", "_[?_]"))
"""functions of texts and lists that take the same time for long ones"""
_BRACKETS = re.compile(r"<(\w+)>")


@dataclass(frozen=True, slots=True, eq=False)
class Overload:
    """One signature of a function. `params` starts with the receiver for a member."""

    name: str
    member: bool
    params: tuple[Type, ...]
    result: Type
    kernel: Kernel
    doc: str = ""
    array: Kernel | None = None  # arrays in, (array, mask of errors or None, error) out; see `arrays`
    grows: int = 0  # work grows with the size of the arguments (1), or with the square (2)

    @property
    def signature(self) -> str:
        """The declaration as text, as the reference page shows it."""
        shown = [str(param) for param in self.params]
        head = f"{shown.pop(0)}." if self.member else ""
        written = f"{head}{self.name}({', '.join(shown)}) -> {self.result}"
        return _BRACKETS.sub(r"\1", written)

    @property
    def type_params(self) -> frozenset[str]:
        """The names of the type parameters in the signature."""
        return frozenset(_params((self.result, *self.params)))


def _params(types: Iterable[Type]) -> Iterable[str]:
    for kind in types:
        if kind.is_param:
            yield kind.name
        yield from _params(kind.params)


def declare(signature: str, kernel: Kernel, doc: str = "", *, array: Kernel | None = None, grows: int | None = None) -> Overload:
    """The overload with this signature; capital letters are type parameters.

    What takes texts or lists grows with them unless it is known not to look at all of them.
    """
    call, _, result = signature.partition(" -> ")
    depth, index = 1, len(call) - 1
    while depth:
        index -= 1
        depth += (call[index] == ")") - (call[index] == "(")
    params = tuple(parse_type(part) for part in split_types(call[index + 1 : -1]))
    receiver, _, name = call[:index].rpartition(".")
    member = bool(receiver) and _is_type(receiver)
    if member:
        params = (parse_type(receiver), *params)
    elif receiver:
        name = f"{receiver}.{name}"
    if grows is None:
        grows = int(name not in _FLAT and any(param.name in _SIZED for param in params))
    return Overload(name, member, params, parse_type(result), kernel, doc, array, grows)


def _is_type(text: str) -> bool:
    return "(" in text or text in kinds.PRIMITIVE or text in kinds.OPAQUE or (len(text) == 1 and text.isupper())


@dataclass(slots=True, eq=False)
class Function:
    """All overloads of a name in one form (global or member); `find` chooses by the values at hand."""

    name: str
    overloads: list[Overload] = field(default_factory=list)
    table: dict[tuple[type, ...], Kernel] = field(default_factory=dict)

    def find(self, *args: Any) -> Kernel:
        """The kernel for these arguments, remembered by their Python classes; CelError if there is none."""
        kernel = self.table.get(tuple(map(type, args)))
        if kernel is not None:
            return kernel
        names = [kind_of(arg) for arg in args]
        for overload in self.overloads:
            if len(names) == len(overload.params) and all(map(_takes, overload.params, names)):
                self.table[tuple(map(type, args))] = overload.kernel
                return overload.kernel
        raise no_overload(self.name, *names)


def _takes(param: Type, kind: str) -> bool:
    return param.name == kind or param.is_param or param.name == "dyn"


def functions(overloads: Iterable[Overload]) -> dict[tuple[str, bool], Function]:
    """The functions by (name, whether a member)."""
    found: dict[tuple[str, bool], Function] = {}
    for overload in overloads:
        key = (overload.name, overload.member)
        found.setdefault(key, Function(overload.name)).overloads.append(overload)
    return found
