"""Health checks and their answers, worded as those of Kubernetes' own components (`healthz` of k8s.io/apiserver)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

FINE, FAILING = 200, 500
WITHHELD = "reason withheld"


@dataclass(frozen=True, slots=True)
class Check:
    """A named question. `probe` says what is wrong, "" where nothing is; `note` what is worth knowing all the same."""

    name: str
    probe: Callable[[], str]
    note: Callable[[], str] | None = None


PING = Check("ping", lambda: "")


@dataclass(frozen=True, slots=True)
class Health:
    """The checks behind one path such as /readyz, in the order in which they are shown."""

    path: str
    checks: tuple[Check, ...]

    def all(self, excluded: Iterable[str] = (), *, verbose: bool = False, frank: bool = False) -> tuple[int, str]:
        """Status and text of all checks but the `excluded` ones; `frank` tells reasons, which else are withheld."""
        left = list(dict.fromkeys(excluded))
        lines, failed = [], False
        for check in self.checks:
            if check.name in left:
                left.remove(check.name)
                lines.append(f"[+]{check.name} excluded: ok")
                continue
            wrong = check.probe()
            failed = failed or bool(wrong)
            lines.append(_failing(check, wrong, frank) if wrong else _fine(check, frank))
        if left:
            names = ", ".join(f'"{name}"' for name in left)
            lines.append(f"warn: some health checks cannot be excluded: no matches for {names}")
        name = self.path.removeprefix("/")
        if failed:
            return FAILING, "\n".join([*lines, f"{name} check failed", ""])
        return FINE, "\n".join([*lines, f"{name} check passed", ""]) if verbose else "ok"

    def one(self, name: str, *, frank: bool = False) -> tuple[int, str] | None:
        """Status and text of one check; None if there is none of this name."""
        for check in self.checks:
            if check.name == name:
                wrong = check.probe()
                reason = wrong if frank else WITHHELD
                return (FAILING, f"internal server error: {reason}\n") if wrong else (FINE, "ok")
        return None


def _failing(check: Check, wrong: str, frank: bool) -> str:
    return f"[-]{check.name} failed: {wrong if frank else WITHHELD}"


def _fine(check: Check, frank: bool) -> str:
    told = check.note() if frank and check.note is not None else ""
    return f"[+]{check.name} ok" + (f": {told}" if told else "")
