from __future__ import annotations

import errno
import io
import json
import logging
import re

import pytest

from stowplan.edge.logs import ROOT, Allowance, AsJson, DecisionLog, Lines, Seldom, level, say, set_up
from stowplan.loop.effects import Bind
from stowplan.loop.events import Failure, NotBound
from unit.edge.watched import scene


@pytest.fixture
def lines():
    """Sets logging up; gives a function that tells the lines so far. What was set up before is restored."""
    root = logging.getLogger()
    before, severity, own = root.handlers[:], root.level, logging.getLogger(ROOT).level
    stream = io.StringIO()

    def begin(form="json", verbosity=2):
        set_up(form, verbosity, stream)
        return lambda: [json.loads(line) if form == "json" else line for line in stream.getvalue().splitlines()]

    yield begin
    root.handlers[:] = before
    root.setLevel(severity)
    logging.getLogger(ROOT).setLevel(own)
    logging.captureWarnings(False)


def test_a_decision_as_json(lines):
    told = lines()
    scene(DecisionLog()).start("node n1 cpu=4\npod a cpu=1").run()
    (line,) = told()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("ts"))
    assert line == {
        "level": "info",
        "v": 2,
        "msg": "bound",
        "pod": "default/a",
        "profile": "default-scheduler",
        "generation": 0,
        "attempt": 1,
        "node": "n1",
        "feasible": 1,
        "seconds": 0.0,
    }


def test_a_decision_as_text(lines):
    told = lines("text")
    scene(DecisionLog()).start("node n1 cpu=4\npod a cpu=1").run()
    (line,) = told()
    assert line.split(" ", 1)[1].startswith(
        'info bound pod="default/a" profile="default-scheduler" generation=0 attempt=1 node="n1"'
    )


def test_below_two_decisions_are_silent(lines):
    told = lines(verbosity=1)
    scene(DecisionLog()).start("node n1 cpu=4\npod a cpu=1").run()
    assert told() == []


def again_and_again(listener, times):
    """A pod that fits nowhere is tried, because another node that is too small has come each time."""
    watched = scene(listener).start("node n0 cpu=1\npod a cpu=4")
    watched.run()
    for _ in range(times):
        watched.now += 400
        watched.run()
    return watched


def test_a_reason_is_told_when_it_is_new(lines):
    told = lines()
    watched = again_and_again(DecisionLog(), 3)
    assert watched.loop.ledger.queue.pods["default/a"].attempts == 4
    (line,) = told()
    assert (line["msg"], line["attempt"]) == ("unschedulable", 1)
    assert "Insufficient cpu" in line["message"]
    watched.show("node n1 cpu=1")
    watched.now += 400
    watched.run()
    assert ["0/1" in told()[0]["message"], "0/2" in told()[-1]["message"]] == [True, True]


def test_from_three_on_every_attempt_is_told(lines):
    told = lines(verbosity=3)
    again_and_again(DecisionLog(), 3)
    assert [line["attempt"] for line in told()] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("failure", "severity"), [(Failure.REFUSED, "warning"), (Failure.GONE, "info"), (Failure.ELSEWHERE, "info")]
)
def test_errors_are_warnings_unless_nobody_waits_for_the_pod(lines, failure, severity):
    told = lines()
    watched = scene(DecisionLog(), answers=False).start("node n1 cpu=4\npod a cpu=1")
    watched.run()
    bind = watched.of(Bind)[0]
    watched.handle(NotBound(bind.pod.key, bind.pod.uid, failure, "why not"))
    (line,) = told()
    assert (line["level"], line["msg"], line["node"], line["message"]) == (severity, "not scheduled", "n1", "why not")


def test_victims_are_told(lines):
    told = lines()
    scene(DecisionLog()).start("node n1 cpu=2\npod small cpu=2 priority=1 on=n1\npod big cpu=2 priority=10").run(60)
    (line,) = [line for line in told() if line["msg"] == "preempting"]
    assert (line["pod"], line["node"], line["preemptor"]) == ("default/small", "n1", "default/big")


def test_many_decisions_are_bounded_and_the_rest_is_counted(lines):
    told, moment = lines(), [0.0]
    watched = scene(DecisionLog(Allowance(10, 5, lambda: moment[0])))
    watched.start("node n1 cpu=100\n" + "\n".join(f"pod p{i} cpu=1" for i in range(20)))
    watched.run()
    assert [line["msg"] for line in told()] == ["bound"] * 5
    moment[0] = 0.1
    watched.show("pod last cpu=1")
    watched.run()
    assert [(line["msg"], line.get("lines")) for line in told()[5:]] == [("left out lines about decisions", 15), ("bound", None)]


def test_an_allowance_grows_back():
    moment = [0.0]
    allowance = Allowance(2, 3, lambda: moment[0])
    assert [allowance.take() for _ in range(5)] == [True, True, True, False, False]
    assert allowance.suppressed == 2
    moment[0] = 1.0
    assert [allowance.take() for _ in range(3)] == [True, True, False]
    moment[0] = 1e6
    assert [allowance.take() for _ in range(4)] == [True, True, True, False]


EVIL = 'a\nlevel=error msg="forged" \x1b[31m\u2028'


def test_values_stay_in_their_line(lines):
    told = lines("text")
    say(logging.getLogger(f"{ROOT}.x"), logging.WARNING, "odd", pod=EVIL)
    (line,) = told()
    assert json.loads(line.partition("pod=")[2]) == EVIL
    assert "\x1b" not in line


def test_messages_of_others_stay_in_their_line(lines):
    told = lines("text")
    logging.getLogger("somebody").warning("two\u2028lines\nor three")
    (line,) = told()
    assert line.endswith("warning two\\u2028lines\\nor three")


def test_tracebacks(lines):
    told = lines()
    try:
        int("oops")
    except ValueError:
        logging.getLogger(ROOT).exception("failed")
    (line,) = told()
    assert line["level"] == "error"
    assert line["trace"].endswith("base 10: 'oops'")


def test_silence_costs_no_formatting(lines):
    lines(verbosity=0)

    class Costly:
        def __str__(self):
            raise AssertionError("was formatted")

    say(logging.getLogger(f"{ROOT}.x"), level(2), "quiet", value=Costly())


def test_libraries_are_heard_from_warnings_on(lines):
    told = lines(verbosity=10)
    logging.getLogger("aiohttp").info("not this")
    logging.getLogger("aiohttp").warning("but %s", "this")
    assert [line["msg"] for line in told()] == ["but this"]


def test_what_is_said_often_is_told_once_in_a_while(lines):
    told, now = lines(), [0.0]
    seldom = Seldom(logging.getLogger(ROOT), 60.0, lambda: now[0])
    for _ in range(1000):
        seldom.say(logging.WARNING, "no room", place="here")
        now[0] += 0.1
    assert [(line["msg"], line["place"], line.get("left_out")) for line in told()] == [
        ("no room", "here", None),
        ("no room", "here", 599),
    ]


@pytest.mark.parametrize("form", ["text", "json"])
def test_lines_are_not_endless(lines, form):
    told = lines(form)
    say(logging.getLogger(ROOT), logging.WARNING, "long", message="x" * 10**6, trace="y" * 10**6 + "the end", many=["z"] * 3)
    (line,) = told()
    text = line if form == "text" else json.dumps(line)
    assert len(text) < 10_000
    assert "xxx ..." in text
    assert "... yyy" in text
    assert "the end" in text


class Failing(io.StringIO):
    """A stream on a disk that is full, or whose reader is gone."""

    def __init__(self):
        super().__init__()
        self.full = True

    def write(self, text):
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def test_lines_that_nobody_takes_are_counted(capsys):
    stream = Failing()
    handler = Lines(stream)
    handler.setFormatter(AsJson())
    for number in range(5):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}", "levelno": logging.INFO}))
    stream.full = False
    for number in range(5, 7):
        handler.emit(logging.makeLogRecord({"msg": f"line {number}", "levelno": logging.INFO}))
    found = [json.loads(line) for line in stream.getvalue().splitlines()]
    assert [(line["msg"], line.get("lines")) for line in found] == [
        ("lines of the log are lost", 5),
        ("line 5", None),
        ("line 6", None),
    ]
    assert capsys.readouterr().err == ""
