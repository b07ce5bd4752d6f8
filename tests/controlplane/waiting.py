"""Waiting for what a live cluster does in its own time."""

import time


def eventually(check, timeout: float = 30.0, every: float = 0.05):
    """The first true answer of `check()`. Raises AssertionError with the last answer after `timeout` seconds."""
    end = time.monotonic() + timeout
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > end:
            raise AssertionError(f"still {answer!r} after {timeout:.0f} s")
        time.sleep(every)
