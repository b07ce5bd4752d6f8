"""How quick the machine is now: bounds are scaled by it, or benchmarks would fail for a busy neighbour's sake."""

import time

import numpy as np

QUIET_CALL = 0.9e-6
"""seconds that one short NumPy call takes on a quiet core"""


VALUES, OUT = np.arange(50, dtype=np.float64), np.empty(50)


def short_calls(number):
    """The fixed loop."""
    for _ in range(number):
        np.subtract(VALUES, 1.0, out=OUT)


def short_call(rounds=5):
    """Seconds of processor time per short NumPy call, now."""
    best = 1.0
    for _ in range(rounds):
        begin = time.process_time()
        short_calls(20_000)
        best = min(best, (time.process_time() - begin) / 20_000)
    return best
