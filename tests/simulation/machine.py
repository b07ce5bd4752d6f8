"""Virtual time: one clock for the world, and machines whose asyncio programs live on it.

A machine is an event loop that never sleeps and never opens a file: it runs one turn when it is told to, and says when it wants
the next one. The clock runs whatever is due next, the world's own callbacks before the machines', so one seed gives one history.
A frozen machine gets no turns; what was due meanwhile is due at once when it thaws, as after a long pause of a process.
"""

import asyncio
import heapq
import itertools
import random
import sys
from asyncio import events

BASE = 1_790_000_000.0
"""wall clock, in epoch seconds, when virtual time is 0"""
MOST_TURNS = 20_000


class StuckError(AssertionError):
    """Something happens again and again without time passing."""


class Clock:
    """The time, and what is to happen: `now` in seconds since the start. `trace` says what happened."""

    def __init__(self, keep_trace: bool = True):
        self.now = 0.0
        self.machines: list[Machine] = []
        self.trace: list[tuple[float, str]] = []
        self.keep_trace, self.halted = keep_trace, False
        self._due: list = []
        self._numbers = itertools.count()

    @property
    def wall(self) -> float:
        return BASE + self.now

    def say(self, text: str) -> None:
        if self.keep_trace:
            self.trace.append((self.now, text))

    def at(self, when: float, function, *arguments) -> None:
        heapq.heappush(self._due, (max(when, self.now), next(self._numbers), function, arguments))

    def after(self, seconds: float, function, *arguments) -> None:
        self.at(self.now + seconds, function, *arguments)

    def halt(self) -> None:
        """Let nothing more happen."""
        self.halted = True

    def run(self, until: float) -> None:
        """Let everything happen that is due up to that time."""
        turns, instant = 0, self.now
        while not self.halted:
            when, machine = self._next()
            if when > until:
                break
            turns, instant = (turns + 1, instant) if when == instant else (0, when)
            if turns > MOST_TURNS:
                raise StuckError(f"no time passes at {self.now:.3f}: {machine.name if machine else self._due[0]}")
            self.now = max(self.now, when)
            if machine is None:
                _, _, function, arguments = heapq.heappop(self._due)
                function(*arguments)
            else:
                machine.turn()
        self.now = max(self.now, until)

    def _next(self):
        when, found = (self._due[0][0] if self._due else float("inf")), None
        for machine in self.machines:
            wish = machine.wish()
            if max(wish, self.now) < when:
                when, found = max(wish, self.now), machine
        return when, found


class _Nothing:
    """A selector without files."""

    def select(self, _timeout):
        return []

    def close(self) -> None:
        pass


class _SteadyTask(asyncio.Task):
    """Sets of tasks are walked through in the order of creation, whatever their addresses."""

    def __init__(self, *arguments, number: int, **more):
        self.number = number
        super().__init__(*arguments, **more)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other) -> bool:
        return self is other


class Machine(asyncio.BaseEventLoop):
    """The event loop of one process."""

    def __init__(self, clock: Clock, name: str):
        super().__init__()
        self._selector = _Nothing()
        self._clock_resolution = 1e-9
        self.clock, self.name = clock, name
        self.frozen_until = 0.0
        self.errors: list[str] = []
        self._handlers: dict = {}
        numbers = itertools.count()
        self.set_task_factory(lambda loop, coro, **more: _SteadyTask(coro, loop=loop, number=next(numbers), **more))
        self.set_exception_handler(self._complain)
        clock.machines.append(self)

    def time(self) -> float:
        return self.clock.now

    def wish(self) -> float:
        """When the next turn is wanted."""
        due = 0.0 if self._ready else self._scheduled[0]._when if self._scheduled else float("inf")
        return max(due, self.frozen_until) if due < float("inf") else due

    def turn(self) -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook)
        events._set_running_loop(self)
        try:
            self._run_once()
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def inside(self, function):
        """What a function says that wants to be called within the running loop."""
        events._set_running_loop(self)
        try:
            return function()
        finally:
            events._set_running_loop(None)

    def add_signal_handler(self, number, callback, *arguments) -> None:
        self._handlers[number] = (callback, arguments)

    def remove_signal_handler(self, number) -> None:
        self._handlers.pop(number, None)

    def signal(self, number) -> None:
        """A signal that nobody waits for does nothing."""
        callback, arguments = self._handlers.get(number, (lambda: None, ()))
        callback(*arguments)

    def kill(self) -> None:
        """The process is no more: its tasks end here and now, and what they still try is not heard."""
        if self in self.clock.machines:
            self.clock.machines.remove(self)
        for _ in range(100):
            tasks = [task for task in asyncio.all_tasks(self) if not task.done()]
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self._scheduled.clear()
            for _ in range(10):
                if self._ready:
                    self.turn()
        else:
            raise StuckError(f"{self.name}: tasks refuse to be cancelled: {tasks}")
        self.close()

    def _complain(self, _loop, context) -> None:
        error = context.get("exception")
        self.errors.append(f"{context.get('message')}: {error!r}")

    def _process_events(self, event_list) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def chance(seed: int, *what) -> random.Random:
    """Randomness of its own for every purpose: taking one away changes no other."""
    return random.Random("/".join(map(str, (seed, *what))))  # noqa: S311 - a seed has to give the same again
