"""One program of the control plane as a child process: start, stop, kill, and what it costs."""

import atexit
import contextlib
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process has used: CPU in seconds (user and system), resident memory now and at its highest in bytes."""

    cpu_seconds: float
    rss: int
    peak_rss: int


def usage(pid: int) -> Usage:
    """Of any process, from /proc. Raises `ProcessLookupError` when it is gone."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        raise ProcessLookupError(pid) from None
    fields = stat.rpartition(") ")[2].split()  # the command, in parentheses, may hold blanks
    kib = {
        name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in status.splitlines()) if name[:2] == "Vm"
    }
    return Usage((int(fields[11]) + int(fields[12])) / TICKS, kib.get("VmRSS", 0) * 1024, kib.get("VmHWM", 0) * 1024)


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 that were free a moment ago, each another one."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


class Process:
    """A program with its arguments; its output goes to `log`. It can be started again after it ended."""

    def __init__(self, arguments: list[str], log: Path, env: dict[str, str] | None = None):
        self.arguments, self.log, self.env = [str(each) for each in arguments], log, env
        self.child: subprocess.Popen[bytes] | None = None
        atexit.register(self.kill)

    @property
    def name(self) -> str:
        return Path(self.arguments[0]).name

    @property
    def pid(self) -> int:
        assert self.child, f"{self.name} was not started"
        return self.child.pid

    def running(self) -> bool:
        return self.child is not None and self.child.poll() is None

    def start(self) -> None:
        assert not self.running(), f"{self.name} runs already"
        with self.log.open("ab") as output:
            # a session of its own: Ctrl-C reaches the tests, which then stop the programs in order
            self.child = subprocess.Popen(self.arguments, stdout=output, stderr=output, env=self.env, start_new_session=True)

    def kill(self) -> None:
        """SIGKILL: the program gets no chance to say goodbye."""
        if self.running():
            self.child.kill()
            self.child.wait()

    def stop(self, timeout: float = 10.0) -> int | None:
        """SIGTERM, then SIGKILL after `timeout` seconds. The exit status; None if it never ran."""
        if self.running():
            self.child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.child.wait(timeout)
            self.kill()
        return self.child.returncode if self.child else None

    def usage(self) -> Usage:
        return usage(self.pid)

    def tail(self, lines: int = 20) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:]) if self.log.exists() else ""

    def await_ready(self, ready, timeout: float = 60.0) -> float:
        """Waits until `ready()` is true; the seconds that took. Raises `RuntimeError` with the log's end if that is in vain."""
        begin = time.monotonic()
        while time.monotonic() - begin < timeout:
            if not self.running():
                raise RuntimeError(f"{self.name} ended:\n{self.tail()}")
            if ready():
                return time.monotonic() - begin
            time.sleep(0.02)
        raise RuntimeError(f"{self.name} is not ready after {timeout:.0f} s:\n{self.tail()}")
