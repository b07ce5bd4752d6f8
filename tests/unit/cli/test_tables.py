from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stowplan.cli.tables import Table, aligned, cells, drawn, printable


def test_columns_line_up_also_with_wide_characters():
    table = Table(["NAME", "N", "WHAT"], right=frozenset({1}))
    table.add("a", 1, "x")
    table.add("日本", 100, "y")
    assert aligned(table) == ["NAME    N  WHAT", "a       1  x", "日本  100  y"]


@given(st.text())
def test_nothing_unprintable_is_left(text):
    assert printable(text).isprintable()
    assert len(printable(text)) == len(text)


@given(st.lists(st.tuples(st.text("ab c", max_size=30), st.text("xy", max_size=30)), max_size=5), st.integers(8, 40))
def test_drawn_tables_keep_to_the_width(rows, width):
    table = Table(["A", "B"])
    for row in rows:
        table.add(*row)
    assert all(cells(line) <= width for line in drawn(table, width, colour=False).splitlines())
