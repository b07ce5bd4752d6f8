"""The page of `stowplan diff`: one HTML file with the comparison as data, and nodes times plugins for each pod that has them.

The page loads nothing: style and script stand in it, a content security policy admits those two by their hashes and nothing
else, and the data is JSON in which no tag can end.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from typing import Any

import msgspec

from stowplan.loop.comparison import Comparison
from stowplan.loop.fates import Case
from stowplan.objects import show

_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def diff_page(comparison: Comparison) -> str:
    """The whole page."""
    parts = {name: (resources.files("stowplan.ui") / f"diffpage.{name}").read_text(encoding="utf-8") for name in ("css", "js")}
    policy = f"default-src 'none'; style-src '{_hash(parts['css'])}'; script-src '{_hash(parts['js'])}'"
    page = (resources.files("stowplan.ui") / "diffpage.html").read_text(encoding="utf-8")
    before, style, between, data, last, script, after = _split(page)
    assert (style, data, script) == ("STYLE", "DATA", "SCRIPT")
    head = before.replace("POLICY", policy)
    return "".join((head, parts["css"], between, embedded(page_data(comparison)), last, parts["js"], after))


def _split(page: str) -> list[str]:
    """The text around the places for style, data and script, and the names of the places."""
    return [piece for part in page.split("{{") for piece in part.split("}}")]


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def embedded(content: Any) -> str:
    """JSON that may stand in a script element: nothing in it is read as HTML or as the end of a line."""
    text = msgspec.json.encode(content).decode()
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


def page_data(comparison: Comparison) -> dict[str, Any]:
    """The PolicyDiff without `requested`, and for the page alone:

    `nodes` with `name` and `zone`, in the order of all columns; `tables` by pod with a Sheet for `old` and `new` each; `tabled`,
    cases that do not differ and have a table; `usage` of `nodes` and `zones`: by resource [now, old, new, allocatable] as numbers
    and as quantities.
    """
    rows = comparison.rows
    content = comparison.to_json()
    content.pop("requested")
    listed, waiting = {case["pod"] for case in content["pods"]}, {case.pod.key for case in comparison.cases}
    tables, others = {}, []
    for case in _with_sheets(comparison):
        assert case.looks is not None
        sheets = {word: look.sheet.to_json(rows) for word, look in zip(("old", "new"), case.looks, strict=True) if look.sheet}
        tables[case.pod.key] = sheets
        if case.pod.key not in listed:
            others.append(case.to_json() | {"running": case.pod.key not in waiting})
    nodes = [{"name": comparison.old.nodes[row], "zone": comparison.zones[row]} for row in rows]
    return content | {"nodes": nodes, "tables": tables, "tabled": others, "usage": _usage(comparison)}


def _with_sheets(comparison: Comparison) -> Iterator[Case]:
    examples = [] if comparison.running is None else [case for found in comparison.running.workloads for case in found.examples]
    for case in [*comparison.cases, *examples]:
        if case.looks is not None and all(look.sheet is not None for look in case.looks):
            yield case


def _usage(comparison: Comparison) -> dict[str, Any]:
    now, use, rows = comparison.old.use.before, comparison.use, comparison.rows
    names = [name for name in use.after if now[name].any() or use.before[name].any() or use.after[name].any()]
    columns = {name: (now[name], use.before[name], use.after[name], use.allocatable[name]) for name in names}
    nodes = [
        {"name": comparison.old.nodes[row], "zone": comparison.zones[row]}
        | {"amounts": {name: _amounts(name, [int(column[row]) for column in found]) for name, found in columns.items()}}
        for row in rows
    ]
    zones: dict[str, dict[str, list[int]]] = {}
    for row in rows:
        sums = zones.setdefault(comparison.zones[row], {name: [0] * 4 for name in names})
        for name, found in columns.items():
            sums[name] = [total + int(column[row]) for total, column in zip(sums[name], found, strict=True)]
    shown = [{"name": zone, "amounts": {name: _amounts(name, four) for name, four in sums.items()}} for zone, sums in zones.items()]
    return {"resources": names, "nodes": nodes, "zones": sorted(shown, key=lambda zone: str(zone["name"]))}


def _amounts(resource: str, amounts: list[int]) -> dict[str, Any]:
    return {"numbers": amounts, "quantities": [show(resource, amount) for amount in amounts]}
