"""Mends files: applies the edits that findings bring, and keeps them only if less is wrong afterwards."""

from __future__ import annotations

import click

from stowplan.edge.configurations import write_whole
from stowplan.policy.check import Checked, Options, check
from stowplan.text import Code, Edit, Source

_ROUNDS = 5


def mend(source: Source, checked: Checked, options: Options) -> Checked:
    """What is still to say about a file after mending it; comments, order and everything else in it stay as they are."""
    original, mended = source, 0
    for _ in range(_ROUNDS):
        edits = _edits(source, checked)
        text = apply(source.text, edits)
        again = check(Source(source.name, text), options)
        if not edits or _badness(again) >= _badness(checked):
            break
        source, checked, mended = Source(source.name, text), again, mended + len(edits)
    if source.text != original.text:
        write_whole(source.name, source.text.encode())
        click.echo(f"{source.name}: mended in {mended} place{'s' if mended > 1 else ''}", err=True)
    return checked


def apply(text: str, edits: list[Edit]) -> str:
    """The text with edits made; of two that overlap the first wins."""
    pieces, position = [], 0
    for edit in sorted(edits, key=lambda e: (e.span.start, e.span.end)):
        if edit.span.start >= position:
            pieces += [text[position : edit.span.start], edit.text]
            position = edit.span.end
    return "".join([*pieces, text[position:]])


def _edits(source: Source, checked: Checked) -> list[Edit]:
    """The edits of places in the file itself; what stands in a quoted string of it has other places."""
    edits = [edit for finding in checked.diagnostics for edit in finding.edits]
    return list(dict.fromkeys(edit for edit in edits if edit.span.source.name == source.name))


def _badness(checked: Checked) -> tuple[int, int, int]:
    """Texts that cannot be read come before fields in wrong places, which hide what else is wrong in them."""
    errors = [finding.code for finding in checked.diagnostics if finding.is_error]
    unread = errors.count(Code.SYNTAX) + errors.count(Code.UNKNOWN_KIND)
    return unread, errors.count(Code.UNKNOWN_FIELD), len(errors)
