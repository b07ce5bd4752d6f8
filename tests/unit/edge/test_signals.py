"""Signals, from the first moment of `stowplan run` to the last; in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
RUN = "import sys; from stowplan.cli.main import main; main(sys.argv[1:])"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:%d"}}]
users: [{name: u, user: {}}]
"""
SLOW = """
import sys, time
from stowplan.cli import run
def slow(*_, **__):
    print("loading", flush=True)
    time.sleep(60)
run._first = slow
from stowplan.cli.main import main
main(["run"])
"""
STUCK = """
import asyncio, sys, threading
from contextlib import asynccontextmanager
from stowplan.cli.main import main
from stowplan.edge import live
from unit.edge.fakeapi import Stuck
from unit.edge.test_live import objects

@asynccontextmanager
async def connect(policy, options):
    if "late" in sys.argv:
        print("connecting", flush=True)
        await asyncio.sleep(3600)
    yield live.Reach(Stuck(objects("node n1 cpu=4\\npod a cpu=1")))
    if "slow" in sys.argv:
        print("leaving", flush=True)
        threading.Event().wait(60)

settings = live.Settings
live.Settings = lambda *given, **named: settings(*given, **named, grace=1.0)
live._connected = connect
main(["run", "--leader-elect=false", "--port", "0", "--log-format", "json", *sys.argv[2:]])
"""


@pytest.fixture
def start():
    """Starts a process; `ignoring` is a signal that it inherits as ignored."""
    started = []

    def call(script, *arguments, ignoring=None):
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            env=os.environ | {"PYTHONPATH": str(TESTS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=None if ignoring is None else lambda: signal.signal(ignoring, signal.SIG_IGN),  # noqa: PLW1509
        )
        started.append(process)
        return process

    yield call
    for process in started:
        process.kill()
        process.communicate()


STOPPING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


@pytest.mark.parametrize("number", STOPPING)
def test_while_the_policy_is_read(start, number):
    process = start(SLOW)
    assert process.stdout.readline() == "loading\n"
    process.send_signal(number)
    assert process.wait(10) == 0
    assert process.stderr.read() == "stopped before anything was begun\n"


@pytest.mark.parametrize("number", STOPPING)
def test_before_there_is_a_connection(start, number):
    process = start(STUCK, "late")
    assert process.stdout.readline() == "connecting\n"
    process.send_signal(number)
    assert process.wait(10) == 0


def test_a_connection_that_is_never_answered(start, tmp_path):
    """Nobody accepts at that port: the backlog does, and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = tmp_path / "kubeconfig"
        config.write_text(KUBECONFIG % silent.getsockname()[1])
        process = start(RUN, "run", "--kubeconfig", str(config), "--leader-elect=false", "--port", "0", "--log-format", "json")
        messages(process, "connecting")
        time.sleep(1)  # the loop runs
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert json.loads(process.stderr.read().splitlines()[-1])["msg"] == "stopped"


def messages(process, last):
    found = []
    while last not in found:
        found.append(json.loads(process.stderr.readline())["msg"])
    return found


def binding(process):
    assert process.stdout.readline() == "binding\n"
    return process


@pytest.mark.parametrize("number", STOPPING)
def test_in_the_midst_of_a_binding(start, number):
    process = binding(start(STUCK, "-"))
    process.send_signal(number)
    messages(process, "stopping")
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 1


def test_a_terminal_that_is_closed_is_one_signal(start):
    process = binding(start(STUCK, "-"))
    for _ in range(3):
        process.send_signal(signal.SIGHUP)
        time.sleep(0.1)
    messages(process, "stopping")
    assert process.wait(30) == 0


def test_without_hangup_goes_on(start):
    process = binding(start(STUCK, "-", ignoring=signal.SIGHUP))
    process.send_signal(signal.SIGHUP)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.5)
    process.send_signal(signal.SIGTERM)
    assert "stopping" in messages(process, "stopping")


def test_a_second_signal_after_the_end_of_the_loop(start):
    """What is left to do then may hang as well."""
    process = binding(start(STUCK, "slow"))
    process.send_signal(signal.SIGTERM)
    assert process.stdout.readline() == "leaving\n"
    process.send_signal(signal.SIGTERM)
    assert process.wait(10) == 1
    assert "stopped at once by a second signal" in messages(process, "stopped at once by a second signal")


def test_a_log_that_nobody_reads_any_more_stops_nothing(start):
    process = binding(start(STUCK, "-"))
    process.stderr.close()
    process.stdout.close()
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    process.stderr = process.stdout = None


@pytest.mark.parametrize("option", ["--decisions", "--last-good"])
def test_a_pipe_that_nobody_reads_does_not_hold_up_the_stop(start, tmp_path, option):
    pipe = tmp_path / "pipe"
    if option == "--decisions":
        os.mkfifo(pipe)
    process = binding(start(STUCK, "-", option, str(pipe)))
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    assert process.wait(30) == 0
    assert time.monotonic() - began < 20
    if option == "--decisions":
        assert "decision records were not written" in process.stderr.read()
