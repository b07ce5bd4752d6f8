"""Answers of HTTP/1.1, however their bytes are cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stowplan.edge.kube.answers import MalformedError, Reading

SIZED = b"HTTP/1.1 201 Created\r\nDate: x\r\ncontent-length: 5\r\n\r\nhello"
CHUNKED = (
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"5\r\nhello\r\n1;name=value\r\n \r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED
EMPTY = b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n"
UNMEASURED = b"HTTP/1.0 500 Oops\r\n\r\nhello"


def read(*pieces):
    """The answer in these pieces, and all that was taken of its body in between."""
    reading, body = Reading(), b""
    for piece in pieces:
        reading.feed(piece)
        size, taken = reading.size, reading.take()
        assert (len(taken), reading.size) == (size, 0)
        body += taken
    return reading, body


@pytest.mark.parametrize(
    ("text", "status", "body"),
    [(SIZED, 201, b"hello"), (CHUNKED, 200, b"hello 0123456789"), (INTERIM, 201, b"hello"), (EMPTY, 204, b"")],
)
@given(cuts=st.lists(st.integers(0, 200)))
def test_an_answer_is_read_the_same_however_it_is_cut(text, status, body, cuts):
    places = [0, *sorted({cut for cut in cuts if cut < len(text)}), len(text)]
    reading, found = read(*(text[begin:end] for begin, end in itertools.pairwise(places)))
    assert (reading.head.status, reading.head.last, reading.done, found) == (status, False, True, body)


@pytest.mark.parametrize("text", [SIZED, CHUNKED, INTERIM])
def test_an_answer_is_not_over_before_its_last_byte(text):
    for end in range(len(text)):
        reading, _ = read(text[:end])
        assert not reading.done
        assert not reading.end()


def test_what_has_no_length_ends_with_the_connection():
    reading, body = read(UNMEASURED[:-2], UNMEASURED[-2:])
    assert (reading.head.status, reading.head.last, body, reading.done) == (500, True, b"hello", False)
    assert reading.end()
    assert reading.done


@pytest.mark.parametrize(
    ("value", "seconds"),
    [(b"3", 3.0), (b"86400", 3600.0), (b"9" * 400, 3600.0), (b"Wed, 21 Oct 2026 07:28:00 GMT", None), (b"", None)],
)
def test_how_long_to_wait_before_the_next_request(value, seconds):
    reading, _ = read(b"HTTP/1.1 429 x\r\nRetry-After: " + value + b"\r\nContent-Length: 0\r\n\r\n")
    assert reading.head.retry_after == seconds
    assert reading.done


@pytest.mark.parametrize("told", [b"Close", b"keep-alive, close", b"keep-alive\r\nConnection: close"])
def test_a_server_may_end_the_connection_with_an_answer(told):
    reading, _ = read(b"HTTP/1.1 200 OK\r\nConnection: " + told + b"\r\nContent-Length: 0\r\n\r\n")
    assert reading.head.last


@pytest.mark.parametrize("told", [b"2, 2", b"2\r\nContent-Length: 2"])
def test_a_length_may_be_told_twice(told):
    assert read(b"HTTP/1.1 200 OK\r\nContent-Length: " + told + b"\r\n\r\nok")[1] == b"ok"


@pytest.mark.parametrize(
    "text",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1  200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0x2\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        SIZED + b"more",
        EMPTY + b"more",
        CHUNKED + b"more",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokX",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\rX",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nokXX0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 20_000,
        b"HTTP/1.1 200 OK\r\nX: " + b"1" * 300_000,
    ],
)
def test_what_is_no_answer_is_refused(text):
    with pytest.raises(MalformedError):
        read(text)
    with pytest.raises(MalformedError):
        read(*(text[at : at + 1] for at in range(min(len(text), 1000))), text[1000:])
