"""Memory and start-up with 5,000 nodes and 50,000 pods: the real program, fed by an API server that makes the cluster up.

1,000 events a second go on for 60 seconds, with STOWPLAN_NIGHTLY for 300; then time is judged as well, which means nothing while
other tests run beside.
"""

import json
import os
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from controlplane.process import Process, free_ports
from controlplane.waiting import eventually
from e2e.running import Stowplan, policy

pytestmark = pytest.mark.slow
NODES, PODS, RATE = 5000, 50_000, 1000
NIGHTLY = "STOWPLAN_NIGHTLY" in os.environ
SECONDS = 300.0 if NIGHTLY else 60.0
MIB = 2**20
MOST_RSS, MOST_START = 700 * MIB, 15.0
WARM_EVENTS, WARM_RATE = (150_000, 2500) if NIGHTLY else (50_000, 2500)
"""what goes before: most pods that were listed have been replaced or have changed by then"""
GROWTH = 20 * MIB
"""what is said about pods is remembered for six minutes, so that much may still come; 70 bytes an event are a leak"""


class Synthetic:
    """The made-up API server; what `Stowplan` needs of a control plane."""

    def __init__(self, folder: Path):
        self.folder = folder
        [port] = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        script = Path(__file__).with_name("synthetic.py")
        self.others = [Process([sys.executable, script, port, NODES, PODS], folder / "synthetic.log")]
        self.others[0].start()
        self.others[0].await_ready(self.ready)

    def run(self, arguments, name, env=None):
        self.others.append(Process(arguments, self.folder / f"{name}.log", env))
        self.others[-1].start()
        return self.others[-1]

    def fetch(self, path, method="GET"):
        request = urllib.request.Request(self.url + path, method=method)  # noqa: S310 -- its own address
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)

    def ready(self):
        try:
            return self.fetch("/state")
        except OSError:
            return None

    def kubeconfig(self):
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "made-up", "cluster": {"server": self.url}}],
            "users": [{"name": "nobody", "user": {}}],
            "contexts": [{"name": "made-up", "context": {"cluster": "made-up", "user": "nobody"}}],
            "current-context": "made-up",
        }
        path = self.folder / "kubeconfig"
        path.write_text(json.dumps(told))
        return path

    def stop(self):
        for each in reversed(self.others):
            each.stop()


@pytest.fixture
def synthetic(tmp_path):
    server = Synthetic(tmp_path)
    yield server
    server.stop()


def test_memory_is_flat(synthetic):
    begun = time.monotonic()
    scheduler = Stowplan(synthetic, synthetic.kubeconfig(), policy())
    scheduler.await_ready(120)
    started = time.monotonic() - begun
    after_start = scheduler.usage()
    synthetic.fetch(f"/play?rate={WARM_RATE}", "POST")
    eventually(lambda: synthetic.fetch("/state")["sent"] >= WARM_EVENTS, timeout=180, every=0.5)
    synthetic.fetch(f"/play?rate={RATE}", "POST")
    before, samples, played = synthetic.fetch("/state")["sent"], [], time.monotonic()
    while time.monotonic() - played < SECONDS:
        time.sleep(0.5)
        samples.append(scheduler.usage().rss)
    state = synthetic.fetch("/state")
    eventually(lambda: synthetic.fetch("/state")["bound"] >= state["pending"], timeout=30)
    used = scheduler.usage()
    tenth, sent = len(samples) // 10, state["sent"] - before
    warm, end = max(samples[:tenth]), max(samples[-tenth:])
    cpu = 1e6 * (used.cpu_seconds - after_start.cpu_seconds) / state["sent"]
    print(
        f"ready after {started:.1f} s with {after_start.rss / MIB:.0f} MiB (peak {after_start.peak_rss / MIB:.0f}); "
        f"{sent} events in {SECONDS:.0f} s: {warm / MIB:.0f} MiB warm, {end / MIB:.0f} MiB in the end, "
        f"peak {used.peak_rss / MIB:.0f} MiB; {cpu:.0f} us of CPU an event"
    )
    scheduler.check()
    assert sent >= (0.9 if NIGHTLY else 0.3) * RATE * SECONDS, "the events came too slowly to tell"
    assert used.peak_rss <= MOST_RSS
    assert end - warm <= GROWTH
    assert (started if NIGHTLY else after_start.cpu_seconds) <= MOST_START
