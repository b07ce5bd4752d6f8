import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.text import Source, Span


@pytest.mark.parametrize(
    ("offset", "place"),
    [(0, (1, 1)), (1, (1, 2)), (2, (1, 3)), (3, (2, 1)), (4, (3, 1)), (6, (3, 3))],
)
def test_lines_and_columns_start_at_one(offset, place):
    assert Source("f", "ab\n\n😀é").locate(offset) == place


@given(st.text(alphabet="ab\n\r é"), st.data())
def test_a_place_leads_back_to_its_character(text, data):
    offset = data.draw(st.integers(0, len(text)))
    source = Source("f", text)
    line, column = source.locate(offset)
    assert text.count("\n", 0, offset) == line - 1
    assert sum(len(part) + 1 for part in text.split("\n")[: line - 1]) + column - 1 == offset
    assert source.line(line) == text.split("\n")[line - 1].rstrip("\r")


def test_a_span_knows_its_text():
    span = Span(Source("f", "a: 1\nb: two\n"), 8, 11)
    assert (span.line, span.column, span.text) == (2, 4, "two")


def test_a_part_alone_keeps_its_places():
    text = "a: 1\nb:\tc\nd: 2\n"
    source = Source("f.yaml", text)
    part = source.only(text.index("d"), len(text))
    assert part.text == "    \n    \nd: 2\n"
    assert part.locate(text.index("2")) == source.locate(text.index("2")) == (3, 4)
