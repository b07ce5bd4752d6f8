"""Node selectors: required and preferred node affinity over a node's labels and name.

Upstream: k8s.io/component-helpers/scheduling/corev1/nodeaffinity (`nodeSelectorTerm`, `NewPreferredSchedulingTerms`) with
`labels.NewRequirement` of apimachinery, whose error texts are kept letter for letter: a preferred term that cannot be
parsed ends the scheduling cycle with them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from stowplan.objects import wire
from stowplan.objects.errors import ObjectError
from stowplan.objects.labels import Requirement, integer, requirement
from stowplan.objects.qualified import key_faults, value_faults

NAME = "metadata.name"
OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
FIELD_OPERATORS = ("In", "NotIn")


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One term: all `expressions` hold for the labels and all `fields` for the name.

    `error` is what upstream says when the term cannot be parsed, without the leading "[i]" (several failures: one a
    line); such a term matches nothing. A term without expressions and fields matches nothing either; it keeps its
    place in the list so that the indices in error texts stay right.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()
    error: str | None = None

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        if self.error is not None or self.empty:
            return False
        return all(r.accepts(labels.get(r.key)) for r in self.expressions) and all(
            # a node has no field but its name: any other reads as the empty string
            r.accepts(name if r.key == NAME else "")
            for r in self.fields
        )

    @property
    def empty(self) -> bool:
        """Nothing is asked, so (upstream's rule) nothing matches."""
        return not (self.expressions or self.fields)


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """Terms of which one must match."""

    terms: tuple[NodeTerm, ...] = ()

    def matches(self, name: str, labels: Mapping[str, str]) -> bool:
        return any(term.matches(name, labels) for term in self.terms)

    def names(self) -> frozenset[str] | None:
        """The only node names that can match, read off `metadata.name In` fields; None if some term has none.

        An empty set means that the terms contradict each other. Upstream: NodeAffinity's PreFilter, which looks at
        the fields as written, also in a term that cannot be parsed.
        """
        if not self.terms:
            return None
        names: frozenset[str] = frozenset()
        for term in self.terms:
            wanted = [r.values for r in term.fields if r.key == NAME and not r.complement]
            if not wanted:
                return None
            names |= frozenset.intersection(*wanted)
        return names


@dataclass(frozen=True, slots=True)
class PreferredTerm:
    """A preferred term; one of weight 0 is kept, empty, for its place in the list."""

    weight: int
    term: NodeTerm


def parse_error(terms: Iterable[PreferredTerm]) -> str | None:
    """What upstream's `NewPreferredSchedulingTerms` says about a list of preferred terms; None if all parse."""
    faults = [f"[{i}]{fault}" for i, t in enumerate(terms) if t.term.error for fault in t.term.error.split("\n")]
    if not faults:
        return None
    unique = list(dict.fromkeys(faults))
    return unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"


def node_selector(selector: wire.NodeSelector, path: str) -> NodeSelector:
    """A core/v1 NodeSelector; ObjectError (below `path`) for an operator that does not exist."""
    terms = selector.node_selector_terms or ()
    return NodeSelector(tuple(node_term(t, f"{path}.nodeSelectorTerms[{i}]") for i, t in enumerate(terms)))


def preferred_terms(terms: Sequence[wire.PreferredTerm], path: str) -> tuple[PreferredTerm, ...]:
    """A list of core/v1 PreferredSchedulingTerm; ObjectError as for `node_selector`."""
    return tuple(
        PreferredTerm(
            term.weight or 0,
            node_term(term.preference, f"{path}[{i}].preference") if term.weight and term.preference else NodeTerm(),
        )
        for i, term in enumerate(terms)
    )


def node_term(term: wire.NodeTerm, path: str) -> NodeTerm:
    """A core/v1 NodeSelectorTerm; ObjectError (below `path`) for an operator that does not exist."""
    faults: list[str] = []
    expressions: list[Requirement] = []
    for i, written in enumerate(term.match_expressions or ()):
        expressions.append(_requirement(written, OPERATORS, f"{path}.matchExpressions[{i}]"))
        faults += _expression_faults(written, f".matchExpressions[{i}]")
    fields: list[Requirement] = []
    for i, written in enumerate(term.match_fields or ()):
        fields.append(_requirement(written, FIELD_OPERATORS, f"{path}.matchFields[{i}]"))
        if len(written.values or ()) != 1:
            place = f".matchFields[{i}].values"
            faults.append(f"{place}: Invalid value: {_go_list(written.values)}: must have one element")
    return NodeTerm(tuple(expressions), tuple(fields), "\n".join(faults) or None)


def _requirement(written: wire.Expression, operators: Sequence[str], path: str) -> Requirement:
    operator = written.operator or ""
    made = requirement(written.key or "", operator, written.values or ()) if operator in operators else None
    if made is None:
        known = ", ".join(operators)
        raise ObjectError(f"{path}.operator", f'"{operator}" is not a node selector operator here ({known})')
    return made


def _expression_faults(written: wire.Expression, place: str) -> list[str]:
    """The failures of upstream `labels.NewRequirement`, in its order."""
    key, values = written.key or "", written.values or ()
    faults = []
    if problems := key_faults(key):
        faults.append(f"{place}.key: Invalid value: {_go_string(key)}: {'; '.join(problems)}")
    if problem := _count_fault(written.operator or "", len(values)):
        faults.append(f"{place}.values: Invalid value: {_go_list(written.values)}: {problem}")
    if written.operator in ("Gt", "Lt"):
        faults += [
            f"{place}.values[{i}]: Invalid value: {_go_string(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for i, value in enumerate(values)
            if integer(value) is None
        ]
    for i, value in enumerate(values):
        if problems := value_faults(value):
            faults.append(f"{place}.values[{i}][{key}]: Invalid value: {_go_string(value)}: {'; '.join(problems)}")
    return faults


def _count_fault(operator: str, count: int) -> str | None:
    if operator in ("In", "NotIn"):
        return None if count else "for 'in', 'notin' operators, values set can't be empty"
    if operator in ("Exists", "DoesNotExist"):
        return "values set must be empty for exists and does not exist" if count else None
    return None if count == 1 else "for 'Gt', 'Lt' operators, exactly one value is required"


def _go_string(text: str) -> str:
    """Go's %q, as far as it agrees with JSON (label texts are short and printable)."""
    return json.dumps(text, ensure_ascii=False)


def _go_list(values: Sequence[str] | None) -> str:
    """A Go string slice as encoding/json writes it; a nil one is null."""
    return "null" if values is None else json.dumps(list(values), ensure_ascii=False, separators=(",", ":"))
