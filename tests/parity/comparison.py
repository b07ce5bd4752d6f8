"""What kube-scheduler decided against what stowplan decides, fact for fact.

A golden is a nested JSON value; a fact is one leaf of it and where it stands. Facts that one side has and the other lacks
are differences too, so nothing can be left out or made up. Node names in lists are sets: their order means nothing.
"""

from __future__ import annotations

import gzip
import json
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from stowplan import PolicyError, explain, load_cluster, load_policy, simulate

SHOWN = 12
"""differences that a failing test prints"""


@dataclass(slots=True)
class Comparison:
    """Facts compared so far, and the differences among them."""

    facts: int = 0
    differences: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        more = len(self.differences) - SHOWN
        lines = [f"{len(self.differences)} of {self.facts} facts differ from kube-scheduler", *self.differences[:SHOWN]]
        return "\n".join([*lines, f"... and {more} more"] if more > 0 else lines)

    def compare(self, where: str, expected: Any, got: Any) -> None:
        """Compare all facts of two JSON values."""
        wanted, found = dict(facts_of(expected)), dict(facts_of(got))
        for path in wanted | found:
            self.facts += 1
            if wanted.get(path, ABSENT) != found.get(path, ABSENT):
                place = " ".join(path)
                self.differences.append(f"{where} {place}\n  expected {show(wanted, path)}\n  got      {show(found, path)}")


ABSENT = "(absent)"


def show(facts: dict[tuple[str, ...], Any], path: tuple[str, ...]) -> str:
    return json.dumps(facts[path], ensure_ascii=False)[:600] if path in facts else ABSENT


def facts_of(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every leaf with its path; an empty mapping is a leaf, and so is a list."""
    if isinstance(value, dict) and value:
        for key, member in value.items():
            yield from facts_of(member, (*path, key))
    else:
        names = isinstance(value, list) and path and path[-1] in ("best", "feasible")
        yield path, sorted(value) if names else value


def cases(path: Path, most: int | None = None) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Cases of a packed file, each with kube-scheduler's answer."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in islice(lines, most):
            row = json.loads(line)
            yield row["case"], row["golden"]


def compare_case(case: dict[str, Any], golden: dict[str, Any], comparison: Comparison) -> None:
    """Run one case through the public API; an exception is a difference as well."""
    try:
        _compare(case, golden, comparison)
    except Exception:  # noqa: BLE001 - one broken case must not hide the others
        comparison.differences.append(f"{golden['name']} breaks off\n{traceback.format_exc(limit=-3)}")


def _compare(case: dict[str, Any], golden: dict[str, Any], comparison: Comparison) -> None:
    name, refused = golden["name"], "error" in golden
    try:
        policy = load_policy(case.get("config"))
    except PolicyError as error:
        comparison.compare(
            f"{name} configuration", "refused" if refused else "accepted", "refused" if refused else f"refused: {error}"
        )
        return
    comparison.compare(f"{name} configuration", "refused" if refused else "accepted", "accepted")
    if refused:
        return
    cluster = load_cluster(case["objects"])
    kind = "sequence" if golden["mode"] == "sequence" else "pods"
    got = (simulate if kind == "sequence" else explain)(policy, cluster).to_json()
    comparison.compare(f"{name} profiles", golden["profiles"], got["profiles"])
    wanted, mine = golden[kind] or [], got[kind]
    comparison.compare(f"{name} pods", [pod["pod"] for pod in wanted], [pod["pod"] for pod in mine])
    by_name = {pod["pod"]: pod for pod in mine}
    for pod in wanted:
        comparison.compare(f"{name} {pod['pod']}", pod, by_name.get(pod["pod"], {}))
