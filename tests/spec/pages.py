"""Spec pages: Markdown whose fenced blocks set a scene or state what stowplan answers. See README.md in this folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from stowplan import explain, load_cluster, load_policy, simulate
from stowplan.edge.notation import read_notation
from stowplan.loop.compare import Wanted, compare
from stowplan.text import Source

FENCE = "```"


@dataclass(slots=True)
class Scene:
    """What the blocks of a section have set so far."""

    objects: list[dict[str, Any]] = field(default_factory=list)
    profile: dict[str, Any] | None = None
    changed: dict[str, Any] | None = None
    """the profile that `diff` compares with"""

    def simulated(self) -> list[dict[str, Any]]:
        return simulate(load_policy(self.profile), load_cluster(self.objects)).to_json()["sequence"]

    def explained(self, pod: str) -> dict[str, Any]:
        key = pod if "/" in pod else f"default/{pod}"
        return explain(load_policy(self.profile), load_cluster(self.objects), [key]).to_json()["pods"][0]

    def compared(self) -> dict[str, Any]:
        policies = load_policy(self.profile), load_policy(self.changed)
        return compare(*policies, load_cluster(self.objects), Wanted(running=100)).to_json()


@dataclass(slots=True)
class Block:
    """A fenced block; `line` is that of its opening fence, from 1."""

    line: int
    words: list[str]
    text: str
    """with a line end after each line"""


def blocks(text: str) -> Iterator[Block | None]:
    """The fenced blocks of a page; None where a section begins."""
    opened: Block | None = None
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if opened is None and line.startswith(FENCE):
            opened = Block(number, line[len(FENCE) :].split(), "")
        elif opened is not None and line.rstrip() == FENCE:
            yield opened
            opened = None
        elif opened is not None:
            opened.text += line
        elif line.startswith(("# ", "## ")):
            yield None
    if opened is not None:
        raise ValueError(f"line {opened.line}: the block has no end")


def answers(path: Path, text: str) -> Iterator[tuple[Block, str]]:
    """Every block that states an answer, with the answer that stowplan gives."""
    scene = Scene()
    for block in blocks(text):
        if block is None:
            scene = Scene()
        elif block.words == ["cluster"]:
            scene.objects = read_notation(Source(path.name, "\n" * block.line + block.text))
        elif block.words == ["yaml", "profile"]:
            scene.profile = yaml.safe_load(block.text)
        elif block.words == ["yaml", "changed"]:
            scene.changed = yaml.safe_load(block.text)
        elif block.words and block.words[0] in ANSWERS:
            yield block, "".join(f"{line.rstrip()}\n" for line in ANSWERS[block.words[0]](scene, *block.words[1:]))
        else:
            raise ValueError(f"{path.name}:{block.line}: there is no block {' '.join(block.words) or 'without a kind'}")


def rewritten(path: Path, text: str) -> str:
    """The page with stowplan's answers in place of those it states."""
    lines = text.splitlines(keepends=True)
    for block, answer in reversed(list(answers(path, text))):
        lines[block.line : block.line + block.text.count("\n")] = [answer]
    return "".join(lines)


# Answers


def short(key: str) -> str:
    return key.removeprefix("default/")


def placements(scene: Scene) -> Iterator[str]:
    """Where each pending pod goes, in the order of the queue."""
    for found in scene.simulated():
        said = f"-> {found['node']}" if "node" in found else f"-- {found.get('message') or found.get('skipped')}"
        yield f"{short(found['pod'])} {said}"
        victims = found.get("preemption", {}).get("victims")
        if victims:
            yield f"    evicts {', '.join(map(short, victims))} from {found['preemption']['node']}"


def verdict(scene: Scene, pod: str) -> Iterator[str]:
    """The totals of the nodes that fit, best first; or why there is none."""
    found = scene.explained(pod)
    if "skipped" in found:
        yield f"not tried: {found['skipped']}"
        for plugin, status in found.get("preEnqueue", {}).items():
            if status["code"] != "Success":
                yield f"{plugin}: {'; '.join(status['reasons'])}"
    elif "totals" in found:
        for node, total in sorted(found["totals"].items(), key=lambda item: (-item[1], item[0])):
            yield f"{node} {total}"
    else:
        yield found["message"]


def first_refusals(scene: Scene, pod: str) -> Iterator[str]:
    """Why each node is out: the first plugin that refuses it."""
    for node, status in sorted(scene.explained(pod).get("infeasible", {}).items()):
        plugin = f"{status['plugin']}: " if status.get("plugin") else ""
        yield f"{node} {plugin}{'; '.join(status['reasons'])}"


def all_refusals(scene: Scene, pod: str) -> Iterator[str]:
    """Why each node is out: every plugin that refuses it."""
    found = scene.explained(pod).get("filters", {})
    for node in sorted({node for refused in found.values() for node in refused}):
        reasons = [f"{plugin}: {'; '.join(refused[node]['reasons'])}" for plugin, refused in found.items() if node in refused]
        yield f"{node} {' | '.join(reasons)}"


def scores(scene: Scene, pod: str, *plugins: str) -> Iterator[str]:
    """Raw and normalised score of each plugin on each node that fits, and the weighted sum."""
    found = scene.explained(pod)
    nodes = sorted(found["totals"])
    rows = [["", *nodes]]
    for plugin in plugins or [*found["scores"]]:
        if plugin in found["scores"]:
            score = found["scores"][plugin]
            cells = [f"{score['raw'][node]} -> {score['normalized'][node]}" for node in nodes]
            rows.append([f"{plugin} x{score['weight']}", *cells])
        else:
            rows.append([f"{plugin} skipped"])
    rows.append(["total", *(str(found["totals"][node]) for node in nodes)])
    widths = [max(len(row[column]) for row in rows if column < len(row)) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))


def candidates(scene: Scene, pod: str) -> Iterator[str]:
    """Which pods each node would have to give up."""
    found = scene.explained(pod)["preemption"]
    for node, candidate in found.get("candidates", {}).items():
        chosen = " <- chosen" if node == found.get("node") else ""
        yield f"{node} evicts {', '.join(map(short, candidate['victims']))}, {candidate['pdbViolations']} against a budget{chosen}"
    if "candidates" not in found:
        yield found["message"]


def differences(scene: Scene) -> Iterator[str]:
    """Pods that fare differently under the changed profile, with what changed; then running pods by workload."""
    found = scene.compared()
    for pod in found["pods"]:
        places = [pod[side].get("node", "pending") for side in ("old", "new")]
        cause = ", after earlier pods" if pod["cause"] == "earlierPods" else ""
        yield f"{short(pod['pod'])} {' -> '.join(places)}{', by chance' if pod.get('chance') else ''}{cause}"
        for node, standings in pod["nodes"].items():
            for side, standing in standings.items():
                if "refused" in standing:
                    yield f"    {node}, {side}: {standing['refused']['plugin']}: {', '.join(standing['refused']['reasons'])}"
        for swing in pod["swings"]:
            views = ["none" if swing[side] is None else str(swing[side]) for side in ("old", "new")]
            yield f"    {swing['plugin']} {' -> '.join(views)}"
        if "node" not in pod["new"]:
            yield f"    {pod['new'].get('message') or pod['new'].get('skipped')}"
    for workload in found["running"]["workloads"]:
        counts = ", ".join(
            f"{workload[change]} {change}" for change in ("moved", "newlyPending", "newlyPlaced") if workload[change]
        )
        yield f"running {short(workload['workload'])}: {counts} of {workload['pods']}"
    if not found["differs"]:
        yield "no difference"


def deciders(scene: Scene) -> Iterator[str]:
    """The profile that decides for each pending pod."""
    for found in explain(load_policy(scene.profile), load_cluster(scene.objects)).to_json()["pods"]:
        yield f"{short(found['pod'])} {found['profile']}"


ANSWERS: dict[str, Callable[..., Iterator[str]]] = {
    "simulate": placements,
    "profiles": deciders,
    "explain": verdict,
    "reasons": first_refusals,
    "all-reasons": all_refusals,
    "scores": scores,
    "candidates": candidates,
    "diff": differences,
}
