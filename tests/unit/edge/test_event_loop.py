"""Which event loop a scheduler runs in."""

import asyncio
import sys
import time

import pytest

from stowplan.edge.process import loop_factory


def test_time_goes_on_within_a_turn():
    """Leases run out, and slices of time end, while the loop is kept busy."""
    pytest.importorskip("uvloop")

    async def busy():
        loop = asyncio.get_running_loop()
        begun, end = loop.time(), time.monotonic() + 0.05
        while time.monotonic() < end:
            pass
        return loop.time() - begun

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert "uvloop" in str(type(runner.get_loop()).__mro__)
        assert runner.run(busy()) >= 0.05


def test_timers_go_by_the_same_clock():
    async def timed():
        loop = asyncio.get_running_loop()
        rung = loop.create_future()
        loop.call_at(loop.time() + 0.05, rung.set_result, None)
        begun = time.monotonic()
        time.sleep(0.03)  # noqa: ASYNC251 - the turn is a long one on purpose
        await rung
        return time.monotonic() - begun

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        assert 0.045 <= runner.run(timed()) < 1.0


def test_without_uvloop_it_is_asyncios_own(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert loop_factory() is None
