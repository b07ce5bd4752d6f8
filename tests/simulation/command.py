"""The command line of the simulation."""

import argparse
import os
import sys
import time

from simulation.generate import generate
from simulation.run import run
from simulation.shrink import shrunk


def main(arguments) -> int:
    """0 if all seeds are well, 1 if one is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED", help="first seed (default 0)")
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds (default 200)")
    parser.add_argument("--trace", action="store_true", help="print what happened, of failing seeds after shrinking")
    parser.add_argument("--whole", action="store_true", help="do not shrink what fails")
    parser.add_argument("--keep-going", action="store_true", help="do not stop at the first failing seed")
    parser.add_argument("--shrink-seconds", type=float, default=60.0, help="time for shrinking one seed (default 60)")
    options = parser.parse_args(arguments)
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of strings have an order of their own in every process
        os.execve(sys.executable, [sys.executable, "-m", "tests.simulation", *arguments], os.environ | {"PYTHONHASHSEED": "0"})  # noqa: S606
    return _all(options)


def _all(options) -> int:
    begun, failed, bindings, edits, refusals = time.monotonic(), [], 0, 0, 0
    for number in range(options.seeds):
        seed = options.first + number
        result = run(generate(seed), keep_trace=options.trace)
        bindings, edits, refusals = bindings + result.bindings, edits + result.edits, refusals + result.refusals
        if result.violation:
            failed.append(seed)
            _report(result, options)
            if not options.keep_going:
                break
        elif options.trace and options.seeds == 1:
            _print_trace(result)
        if (number + 1) % 20 == 0:
            print(f"{number + 1} of {options.seeds} seeds, {bindings} bindings, {time.monotonic() - begun:.0f} s", flush=True)
    done = f"{number + 1} seeds from {options.first}: {bindings} bindings, policies changed {edits} and refused {refusals} times"
    done += f", {time.monotonic() - begun:.1f} s"
    print(f"{done}: {'all well' if not failed else f'FAILED: {failed}'}")
    return 1 if failed else 0


def _report(result, options) -> None:
    print(f"seed {result.scenario.seed} FAILED: {result.violation}", flush=True)
    print(f"  replay: python -m tests.simulation --from {result.scenario.seed} --seeds 1 --trace")
    if not options.whole:
        result = shrunk(result.scenario, options.shrink_seconds)
        print(f"shrunk to {len(result.scenario.steps)} steps and {len(result.scenario.faults)} faults: {result.violation}")
        print(result.scenario)
    if options.trace:
        _print_trace(result)


def _print_trace(result) -> None:
    for when, text in result.trace:
        print(f"{when:9.3f}  {text}")
