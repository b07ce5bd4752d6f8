"""Verbs that ask a running scheduler, and something else answers: one clear error, never an internal one, and in time."""

from __future__ import annotations

import json
import socket
import threading
import time
from copy import deepcopy

import pytest

from stowplan.cli import server as asking

VERBS = (("queue",), ("why", "web/a"), ("why", "a"), ("policy", "status"), ("shadow",))
HTML = b"<!doctype html>\n<html><body>\x1b[31mWelcome</body></html>"


@pytest.fixture
def stranger():
    """Serves what a function writes to each connection; gives the URL."""
    sockets = []

    def start(talk):
        listener = socket.create_server(("127.0.0.1", 0))
        sockets.append(listener)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        def serve(connection):
            with connection:
                try:
                    while b"\r\n\r\n" not in connection.recv(65536):
                        pass
                    talk(connection)
                except OSError:
                    pass

        threading.Thread(target=accept, daemon=True).start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for each in sockets:
        each.shutdown(socket.SHUT_RDWR)
        each.close()


def http(body, status="200 OK", *more):
    """A function that answers so."""
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *more, "", ""))
    return lambda connection: connection.sendall(head.encode() + body)


def one_error(answer):
    assert (answer.code, answer.out) == (3, "")
    (line,) = answer.err.splitlines()
    assert line.startswith("Error: ")
    assert line.isprintable()
    assert len(line) < 900
    return line


ANSWERS = {
    "html": http(HTML),
    "html, refused": http(HTML, "403 Forbidden"),
    "html, broken": http(HTML, "500 Internal Server Error"),
    "html, not found": http(HTML, "404 Not Found"),
    "json, not found": http(b'{"detail": "Not Found"}', "404 Not Found"),
    "nothing": http(b""),
    "null": http(b"null"),
    "a number": http(b"1"),
    "a text": http(b'"items"'),
    "an array": http(b"[]"),
    "an object": http(b"{}"),
    "a Kubernetes list": http(json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "a"}}]}).encode()),
    "items of nothing": http(b'{"items": null, "since": null, "generation": {}, "outcomes": []}'),
    "truncated json": http(b'{"items": [{"pod": "we'),
    "truncated answer": lambda c: c.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{"items": ['),
    "truncated chunk": lambda c: c.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{}"),
    "truncated error": lambda c: c.sendall(b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n{}"),
    "deep json": http(b"[" * 100_000),
    "no utf-8": http(b'{"items": "\xff"}'),
    "binary": http(bytes(range(256))),
    "no http": lambda c: c.sendall(b"SSH-2.0-OpenSSH_9.2p1\r\n"),
    "tls": lambda c: c.sendall(b"\x15\x03\x03\x00\x02\x02\x46"),
    "an endless line": lambda c: c.sendall(b"HTTP/1.1 " + b"2" * 200_000),
    "too many headers": lambda c: c.sendall(b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 500 + b"\r\n"),
    "hanging up": lambda _: None,
}


@pytest.mark.parametrize("answers", ANSWERS.values(), ids=ANSWERS)
def test_other_services_are_one_error(stowplan, stranger, answers):
    url = stranger(answers)
    for verb in VERBS:
        assert "127.0.0.1" in one_error(stowplan(*verb, "--server", url))


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:99999", "http://[::1", "http://\u2603" + "a" * 80, "http://127.0.0.1:1", "https://127.0.0.1:1"],
)
def test_places_where_nobody_can_be(stowplan, url):
    for verb in VERBS:
        one_error(stowplan(*verb, "--server", url))


def drip(start):
    """A function that sends the start at once, and then a space every now and then."""

    def talk(connection):
        connection.sendall(start)
        while True:
            time.sleep(0.1)
            connection.sendall(b" ")

    return talk


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 500 Oops\r\n\r\n"])
def test_the_whole_answer_has_a_time(stowplan, stranger, monkeypatch, start):
    monkeypatch.setattr(asking, "SECONDS", 0.5)
    url, began = stranger(drip(start)), time.monotonic()
    assert one_error(stowplan("queue", "--server", url)).endswith("does not answer within 0.5 s")
    assert time.monotonic() - began < 3


def test_an_endless_answer_is_not_kept(stowplan, stranger, monkeypatch):
    monkeypatch.setattr(asking, "LARGEST", 100_000)

    def talk(connection):
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            connection.sendall(b" " * 65536)

    assert one_error(stowplan("queue", "--server", stranger(talk))).endswith("answers with more than 100000 bytes")


TIME = "2027-01-15T08:00:00Z"
SCORES = {"NodeResourcesFit": {"raw": 1, "normalized": 2.5, "weighted": 3}}
RECORD = {
    "kind": "Decision", "pod": "web/a", "time": TIME, "profile": "p", "policy": {"generation": 1, "hash": "ab", "version": 2},
    "attempt": 1, "result": "scheduled", "detailed": True, "node": "n1", "score": 3.0, "feasible": 2, "tied": 1,
    "candidates": [{"node": "n1", "total": 3, "scores": SCORES}, {"node": "n2", "total": 2, "scores": SCORES}],
    "victims": ["web/b"], "audit": {"r": "no"},
    "ruleErrors": {"r": "no such key"}, "rejected": [{"reason": "x", "plugin": "y", "nodes": 1, "examples": ["n3"]}],
}  # fmt: skip
SIDE = {
    "placed": 2, "pending": 1, "waiting": {"active": 1}, "attempts": {"scheduled": 2},
    "secondsToPlace": {"mean": 1, "max": 2, "le": {"0.01": 1, "1e+02": 2, "+Inf": 2}}, "margin": {"decisions": 1, "mean": 2},
}  # fmt: skip
PAGES = {
    ("queue",): {
        "leads": True, "synced": True, "counts": {"active": 1}, "total": 1,
        "items": [
            {"pod": "web/a", "state": "backing off", "attempts": 2, "since": TIME, "nextTry": TIME, "plugins": ["p"]},
            {"pod": "web/b", "state": "being bound", "node": "n1", "stage": "bind"},
        ],
    },
    ("why", "web/a"): {"leads": True, "since": TIME, "items": [RECORD]},
    ("policy", "status"): {
        "leads": False, "leader": "a_b", "generation": 1, "hash": "ab", "source": "f", "since": TIME, "profiles": ["p"],
        "warnings": ["w"], "rejected": {"time": TIME, "source": "f", "errors": ["e"]}, "trouble": "t", "version": 3,
        "rollout": {
            "profile": "p", "percent": 5, "match": "true", "nodes": {"candidate": 1, "total": 2},
            "versions": {"stable": SIDE, "candidate": SIDE},
        },
    },
    ("shadow",): {
        "kind": "ShadowReport", "outcomes": {"same": 1}, "agreement": 0.5,
        "disagreements": [{"time": TIME, "pod": "web/a", "kind": "lower", "theirs": "a", "ours": "b", "explanation": "x"}],
    },
}  # fmt: skip
OTHERS = (None, 7, -1.5, True, "x", "", [], [None], {}, {"x": None})


def places(value, path=()):
    """Every place in a document."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inside:
        yield from places(item, (*path, name))


def without(document, path):
    found = deepcopy(document)
    holder = found
    for name in path[:-1]:
        holder = holder[name]
    del holder[path[-1]]
    return found


def changed(document, path, other):
    found = deepcopy(document)
    holder = found
    for name in path[:-1]:
        holder = holder[name]
    holder[path[-1]] = other
    return found


@pytest.mark.parametrize("verb", PAGES, ids=lambda verb: verb[0])
def test_every_member_may_be_missing_or_another_thing(stowplan, monkeypatch, verb):
    """The answer can be shown, or it is one error."""
    shown = {}
    monkeypatch.setattr(asking, "_answer", lambda *_: (200, json.dumps(shown["page"]).encode()))
    shown["page"] = PAGES[verb]
    assert stowplan(*verb).code in (0, 1)
    refused = 0
    for path in places(PAGES[verb]):
        for page in (without(PAGES[verb], path), *(changed(PAGES[verb], path, other) for other in OTHERS)):
            shown["page"] = page
            answer = stowplan(*verb)
            if answer.code == 3:
                one_error(answer)
                refused += 1
            else:
                assert (answer.code in (0, 1), answer.err) == (True, ""), page
    assert refused > 50


@pytest.mark.parametrize("moment", ["2027-13-45T00:00:00Z", "yesterday", "", 1e300, -1e300])
def test_moments_that_are_none(stowplan, monkeypatch, moment):
    for verb, path in (
        (("queue",), ("items", 0, "since")),
        (("why", "web/a"), ("items", 0, "time")),
        (("policy", "status"), ("since",)),
    ):
        page = changed(PAGES[verb], path, moment)
        monkeypatch.setattr(asking, "_answer", lambda *_, page=page: (200, json.dumps(page).encode()))
        assert "is no time" in one_error(stowplan(*verb))


def test_files_that_hold_something_else(stowplan, tmp_path):
    path = tmp_path / "file"
    for content in (HTML, b"", b"[]", b"{}", b'{"kind": "ShadowReport"}', b"[" * 100_000, bytes(range(256))):
        path.write_bytes(content)
        assert str(path) in one_error(stowplan("shadow", path))
    assert str(tmp_path) in one_error(stowplan("shadow", tmp_path))


def test_records_in_files_that_are_none(stowplan, tmp_path):
    path = tmp_path / "decisions.jsonl"
    good = json.dumps(RECORD)
    for place in places(RECORD):
        if place == ("kind",):
            continue
        for record in (without(RECORD, place), *(changed(RECORD, place, other) for other in OTHERS)):
            path.write_text(f"{good}\n{json.dumps(record | {'note': 'web/a'})}\n")
            answer = stowplan("why", "web/a", "--all", "--decisions", path)
            if answer.code == 3:
                assert "line 2 of" in one_error(answer) or "is no time" in answer.err
            else:
                assert (answer.code, answer.err) == (0, "")
    path.write_text(f"{good}\n{good[:60]}\n{'[' * 100_000}web/a\n")
    assert stowplan("why", "web/a", "--decisions", path).code == 0
