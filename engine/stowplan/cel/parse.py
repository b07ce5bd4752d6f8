"""Tokens into the tree, by precedence climbing. Reports the first thing that does not fit, with its place.

The grammar is CEL's with optional syntax (`a.?b`, `m[?k]`, `[?x]`, `{?k: v}`) and names in backquotes after a dot.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import TypeVar

from stowplan.cel import limits
from stowplan.cel.lex import Token, tokens
from stowplan.cel.limits import RefusedError
from stowplan.cel.macros import expand
from stowplan.cel.tree import Call, Choice, Const, Ident, ListOf, Logic, MapOf, Message, Node, Select, qualified
from stowplan.cel.values import INT_MAX

T = TypeVar("T")
_RESERVED = (
    "as break const continue else false for function if import in let loop null package namespace return true var void while"
)
RESERVED = frozenset(_RESERVED.split())
_AND = 1
_LEVELS = {"||": 0, "&&": _AND, "+": 3, "-": 3, "*": 4, "/": 4, "%": 4} | dict.fromkeys(("<", "<=", ">", ">=", "==", "!=", "in"), 2)


def parse(text: str, declared: Container[str] = ()) -> Node:
    """The tree of the expression; RefusedError if it is none or too large. Reserved words that are declared are names."""
    if len(text.encode("utf-8", "surrogatepass")) > limits.SOURCE:
        raise RefusedError(f"the expression is longer than {limits.SOURCE} bytes", 0, len(text))
    parser = _Parser(tokens(text), declared)
    node = parser.expression()
    parser.expect("end")
    return node


class _Parser:
    def __init__(self, found: list[Token], declared: Container[str]) -> None:
        self.tokens = found
        self.declared = declared
        self.at = 0
        self.depth = 0
        self.heights: dict[Node, int] = {}

    # -- tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> Token | None:
        """The next token if it is one of these, and on to the one after it."""
        token = self.tokens[self.at]
        if token.kind not in wanted:
            return None
        self.at += 1
        return token

    def expect(self, kind: str) -> Token:
        token = self.take(kind)
        if token is None:
            found = self.token
            what = "the end of the expression" if found.kind == "end" else f"'{found.text}'"
            wanted = {"end": "the end of the expression", "name": "a name"}.get(kind, f"'{kind}'")
            raise RefusedError(f"expected {wanted}, found {what}", found.start, found.end)
        return token

    def made(self, node: Node) -> Node:
        """Books the node, and refuses trees that are too big to be walked."""
        height = 1 + max((self.heights.get(child, 0) for child in node.children()), default=0)
        self.heights[node] = height
        if height > limits.CHAIN:
            raise RefusedError(f"more than {limits.CHAIN} operators or selections in a row", node.start, node.end)
        if len(self.heights) > limits.NODES:
            raise RefusedError(f"the expression has more than {limits.NODES} parts", node.start, node.end)
        return node

    # -- precedence levels

    def expression(self) -> Node:
        self.depth += 1
        if self.depth > limits.DEPTH:
            raise RefusedError(f"nested more than {limits.DEPTH} deep", self.token.start, self.token.end)
        node = self.climb(0)
        if self.take("?"):
            then = self.climb(0)
            self.expect(":")
            otherwise = self.expression()
            node = self.made(Choice(node.start, otherwise.end, node, then, otherwise))
        self.depth -= 1
        return node

    def climb(self, level: int) -> Node:
        """Operators that bind at least as tightly as the level; one frame whatever the number of levels."""
        left = self.unary()
        while (found := _LEVELS.get(self.token.kind, -1)) >= level:
            operator = self.token
            if found <= _AND:
                terms = [left]
                while self.take(operator.kind):
                    terms.append(self.climb(found + 1))
                left = self.made(Logic(left.start, terms[-1].end, tuple(terms), dominant=found < _AND))
                continue
            self.at += 1
            right = self.climb(found + 1)
            name = f"_{operator.kind}_" if operator.kind != "in" else "@in"
            left = self.made(Call(left.start, right.end, name, None, (left, right), operator.start))
        return left

    def unary(self) -> Node:
        operator = self.take("!", "-")
        if operator is None:
            return self.member()
        count = 1
        while self.token.kind == operator.kind:
            count += 1
            self.at += 1
        number = self.token
        if operator.kind == "-" and number.kind in ("int", "float"):
            count -= 1  # the sign belongs to the number: the least int has no positive counterpart
            self.at += 1
            operand = self.members(self.made(Const(operator.start, number.end, -number.value)))
        else:
            operand = self.member()
        if count % 2 == 0:
            return operand  # as cel-go: an even number of signs is no sign, whatever the type
        return self.made(Call(operator.start, operand.end, f"{operator.kind}_", None, (operand,), operator.start))

    # -- primaries and what follows them

    def member(self) -> Node:
        return self.members(self.primary())

    def members(self, node: Node) -> Node:
        while True:
            if self.take("."):
                node = self.selected(node)
            elif self.take("["):
                node = self.indexed(node)
            elif self.token.kind == "{" and (name := qualified(node)) is not None:
                node = self.message(node, name)
            else:
                return node

    def selected(self, operand: Node) -> Node:
        optional = self.take("?") is not None
        quoted = self.take("quoted")
        if quoted:
            return self.made(Select(operand.start, quoted.end, operand, quoted.text, optional))
        name = self.expect("name")
        if not optional and (opening := self.take("(")):
            args = self.items(")", self.expression, trailing=False)
            call = Call(operand.start, self.tokens[self.at - 1].end, name.text, operand, tuple(args), opening.start)
            return self.made(expand(call))
        return self.made(Select(operand.start, name.end, operand, name.text, optional))

    def indexed(self, operand: Node) -> Node:
        opening = self.tokens[self.at - 1]
        name = "_[?_]" if self.take("?") else "_[_]"
        index = self.expression()
        end = self.expect("]").end
        return self.made(Call(operand.start, end, name, None, (operand, index), opening.start))

    def message(self, node: Node, name: str) -> Node:
        self.expect("{")

        def entry() -> tuple[str, Node]:
            self.take("?")
            field = self.take("quoted") or self.expect("name")
            self.expect(":")
            return field.text, self.expression()

        entries = self.items("}", entry)
        return self.made(Message(node.start, self.tokens[self.at - 1].end, name, tuple(entries)))

    def primary(self) -> Node:
        token = self.token
        self.at += 1
        if token.kind in ("value", "uint", "float", "int"):
            if token.kind == "int" and token.value > INT_MAX:
                raise RefusedError("invalid int literal: it does not fit 64 bits", token.start, token.end)
            return self.made(Const(token.start, token.end, token.value))
        if token.kind == "(":
            node = self.expression()
            self.expect(")")
            return node
        if token.kind == "[":
            return self.list_of(token)
        if token.kind == "{":
            return self.map_of(token)
        if token.kind == ".":
            return self.named(self.expect("name"), absolute=True)
        if token.kind == "name":
            return self.named(token, absolute=False)
        what = "the end of the expression" if token.kind == "end" else f"'{token.text}'"
        raise RefusedError(f"expected a value, found {what}", token.start, token.end)

    def named(self, token: Token, *, absolute: bool) -> Node:
        if token.text in RESERVED and token.text not in self.declared:
            raise RefusedError(f"reserved identifier: {token.text}", token.start, token.end)
        if opening := self.take("("):
            args = self.items(")", self.expression, trailing=False)
            call = Call(token.start, self.tokens[self.at - 1].end, "." * absolute + token.text, None, tuple(args), opening.start)
            return self.made(expand(call))
        return self.made(Ident(token.start, token.end, token.text, absolute))

    def items(self, closing: str, item: Callable[[], T], *, trailing: bool = True) -> list[T]:
        """What stands between commas up to the closing bracket."""
        found: list[T] = []
        if trailing and self.token.kind == "," and self.tokens[self.at + 1].kind == closing:
            self.at += 1  # `[,]` is an empty list
        while not self.take(closing):
            if found:
                self.expect(",")
                if trailing and self.take(closing):
                    break
            found.append(item())
            if len(found) > limits.ITEMS:
                raise RefusedError(f"a literal of more than {limits.ITEMS} items", self.token.start, self.token.end)
            if self.token.kind not in (",", closing):
                self.expect(closing)
        return found

    def list_of(self, opening: Token) -> Node:
        optional: set[int] = set()
        count = 0

        def item() -> Node:
            nonlocal count
            if self.take("?"):
                optional.add(count)
            count += 1
            return self.expression()

        items = self.items("]", item)
        return self.made(ListOf(opening.start, self.tokens[self.at - 1].end, tuple(items), frozenset(optional)))

    def map_of(self, opening: Token) -> Node:
        optional: set[int] = set()
        count = 0

        def entry() -> tuple[Node, Node]:
            nonlocal count
            if self.take("?"):
                optional.add(count)
            count += 1
            key = self.expression()
            self.expect(":")
            return key, self.expression()

        entries = self.items("}", entry)
        return self.made(MapOf(opening.start, self.tokens[self.at - 1].end, tuple(entries), frozenset(optional)))
