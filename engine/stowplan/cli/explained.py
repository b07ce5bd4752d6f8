"""What an explanation looks like: verdict, what decided, scores, rejections, and what would flip it, most telling first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

from stowplan.cli.audited import audited, failed
from stowplan.cli.output import Page
from stowplan.cli.rejected import all_nodes, behind, rejections
from stowplan.cli.scored import notes, requests, scores
from stowplan.cli.unasked import unasked
from stowplan.cli.victims import evicts
from stowplan.loop.queue import in_order
from stowplan.policy.attempt import admission, attempt
from stowplan.policy.compile import Policy
from stowplan.policy.details import details
from stowplan.policy.evaluate import points
from stowplan.policy.flip import Margin, margin, ranking, request_flips, weight_flips, written
from stowplan.policy.nominated import Attempt
from stowplan.policy.subjects import Subject, pending
from stowplan.policy.unmet import LOOKED_AT, Unmet, cheapest, remedies
from stowplan.state import Store
from stowplan.text import counted

SHOWN = 3
"""Ways to flip a decision that are shown unless all are asked for."""
NODES = 3


@dataclass(frozen=True, slots=True)
class View:
    """How much to show."""

    wide: bool
    all_nodes: bool
    top: int | None
    """nodes whose scores are shown; None: what fits the width"""


@dataclass(frozen=True, slots=True)
class Case:
    """One pod, judged."""

    policy: Policy
    store: Store
    subject: Subject
    found: Attempt

    def name(self, row: int) -> str:
        """Name of a row's node."""
        return self.store.nodes[row].name

    @property
    def fits(self) -> bool:
        return len(self.found.best) > 0


def show(policy: Policy, store: Store, subjects: Sequence[Subject], view: View) -> int:
    """Print what was found out about each pod. 1 if one that was tried fits nowhere, otherwise 0."""
    page, code = Page(), 0
    for place, subject in enumerate(subjects):
        if place:
            page.line()
        with pending(store, subject):
            pod = store.pending[subject.pod.key]
            case = Case(policy, store, subject, attempt(policy, store, pod))
            _explain(page, case, view)
        code |= case.found.skipped is None and not case.fits
    page.write()
    return int(code)


def _explain(page: Page, case: Case, view: View) -> None:
    if case.found.skipped is not None:
        _skipped(page, case)
        if case.found.skipped != "gated":
            return
        page.line("What follows judges it as if it were not gated.")
        case = replace(case, found=attempt(case.policy, case.store, case.found.pod, gated=False))
    profile = case.policy.profiles[case.found.profile]
    if case.subject.node is not None:
        page.line(f"{case.found.pod.key} runs on {case.subject.node}: that was decided before.", bold=True)
        page.line("What follows judges it anew, on today's cluster, as if it were pending.")
    _verdict(page, case)
    _before(page, case)
    page.line(requests(case.found))
    _own_node(page, case)
    if case.fits:
        page.line(_decided(case))
        scores(page, profile, case.found, case.store, view.top)
    rejections(page, case.found, case.store, wide=view.wide)
    behind(page, details(case.policy, case.store, case.found), wide=view.wide)
    failed(page, profile, case.found, case.store)
    audited(page, profile, case.found, case.store)
    if view.all_nodes:
        all_nodes(page, case.found, case.store, wide=view.wide)
    if case.fits:
        _flips(page, case, view)
    else:
        _unmet(page, case, view)
    for note in notes(profile, case.found):
        page.line(f"note: {note}")
    unasked(page, case.policy, [case.found.pod])


def _before(page: Page, case: Case) -> None:
    """Say that a simulation may come to something else, where it places other pods before this one."""
    if case.subject.node is not None or case.found.skipped is not None:
        return
    queue = in_order(case.policy, case.store.pending.values())
    earlier = takewhile(lambda pod: pod.key != case.found.pod.key, queue)
    count = sum(admission(case.policy, case.store, pod)[0] is None for pod in earlier)
    if count:
        come, them = ("pod comes", "it") if count == 1 else ("pods come", "them")
        page.line(f"judged as the cluster stands; {count} pending {come} before it (simulate places {them} first)")


def _skipped(page: Page, case: Case) -> None:
    """Why nobody tries the pod, in one sentence."""
    pod, found, node = case.found.pod, case.found, case.subject.node
    where = f"runs on {node}" if node in case.store.row_of else f"is bound to {node}, which is not there"
    if found.skipped == "no profile":
        import difflib

        who = pod.spec.scheduler_name
        names = [str(profile.scheduler_name) for profile in case.policy.configuration.profiles]
        known = ", ".join(names)
        near = difflib.get_close_matches(who, names, 1, cutoff=0.8)
        hint = f"did you mean {near[0]}?" if near else f"profiles here: {known}"
        if node is not None:
            page.line(
                f'{pod.key} {where}; it was not scheduled by any scheduler known here: no profile serves "{who}" ({hint})',
                bold=True,
            )
        else:
            page.line(f'{pod.key} waits: no scheduler serves "{who}" ({hint})', bold=True, fg="yellow")
    elif found.skipped == "gated":
        for name, status in found.pre_enqueue.items():
            if status.reasons:
                page.line(f"{pod.key} is gated by {name}: {', '.join(status.reasons)}", bold=True, fg="yellow")
    else:
        page.line(
            f"{pod.key} is being deleted{f' and {where}' if node else ''}: it is not scheduled any more", bold=True, fg="yellow"
        )


def _verdict(page: Page, case: Case) -> None:
    found = case.found
    if not case.fits:
        page.line(f"{found.pod.key} is unschedulable (profile {found.profile})", bold=True, fg="red")
        page.line(f"  {found.message}")
        if found.preemption is not None and found.preemption.node is not None:
            page.line(f"  {evicts(found.preemption)}")
        return
    total = (
        ""
        if found.scoring is None or not len(found.scoring.totals)
        else f"total {points(int(found.scoring.totals.max()), found.scoring.scale)}, "
    )
    feasible = f"{len(found.feasible)} of {len(case.store.nodes)} nodes feasible"
    page.line(f"{found.pod.key} -> {case.name(found.best[0])} ({total}{feasible}, profile {found.profile})", bold=True, fg="green")


def _own_node(page: Page, case: Case) -> None:
    """What today's cluster says of the node that a pod runs on, where that is not the winner."""
    node = case.subject.node
    row = case.store.row_of.get(node) if node is not None else None
    if node is None:
        return
    if row is None:
        page.line(f"{node}, which it is bound to, is not there")
    elif row in case.found.infeasible:
        status = case.found.infeasible[row]
        page.line(f"{node} would be rejected today ({status.plugin or 'PreFilter'}: {', '.join(status.reasons)}):")
        page.line("the cluster has changed since, or spec.nodeName was set by hand and it was not scheduled by any scheduler")
    elif row not in case.found.best[:1]:
        order = [int(case.found.feasible[place]) for place in ranking(case.found)]
        rank = f"it is number {order.index(row) + 1} of {len(order)} in the ranking" if row in order else "other nodes come first"
        page.line(f"{node}, where it runs, would not be chosen today: {rank}")


def _decided(case: Case) -> str:
    found = case.found
    if found.pod.nominated_node and len(found.feasible) == 1 and found.pod.nominated_node == case.name(found.feasible[0]):
        return f"{found.pod.nominated_node} is nominated for it: while it passes the filters, no other node is looked at"
    ahead = margin(found)
    if ahead is None:
        return f"{case.name(found.best[0])} is the only node that passes every filter"
    if ahead.points == 0:
        others = [case.name(row) for row in found.best[1:]]
        more = f" and {len(others) - NODES} more" if len(others) > NODES else ""
        tie = f"tied with {', '.join(others[:NODES])}{more}: the first name wins here, kube-scheduler takes one at random"
        return tie if not ahead.parts else f"{tie}; {_balance(ahead)}"
    name, part = ahead.parts[0]
    return f"decided by {name} ({_signed(part)}): ahead of {case.name(ahead.runner_up)} by {ahead.points}{_rest(ahead)}"


def _signed(part: float) -> str:
    return f"{part:+d}" if isinstance(part, int) else f"{part:+g}"


def _rest(ahead: Margin) -> str:
    return f"; {_balance(Margin(ahead.winner, ahead.runner_up, ahead.points, ahead.parts[1:]))}" if len(ahead.parts) > 1 else ""


def _balance(ahead: Margin) -> str:
    """The plugins that speak for and against the winner."""
    sides = []
    for word, sign in (("for", 1), ("against", -1)):
        parts = [f"{name} {_signed(part)}" for name, part in ahead.parts if part * sign > 0]
        sides += [f"{word} it {', '.join(parts if sign > 0 else parts[::-1])}"] if parts else []
    return "; ".join(sides)


def _flips(page: Page, case: Case, view: View) -> None:
    found = case.found
    if len(found.feasible) < 2:
        return
    page.heading("WHAT WOULD FLIP IT")
    count = None if view.wide else SHOWN
    lines = []
    for flip in weight_flips(found)[:count]:
        change = f"weight {flip.weight} -> {flip.changed}" if flip.changed else f"score disabled (weight {flip.weight})"
        lines.append(f"{flip.plugin}: {change}: {case.name(flip.winner)} wins")
    for other in request_flips(case.policy, case.store, found):
        old, new = written(other.resource, other.amount), written(other.resource, other.changed)
        why = f" ({case.name(found.best[0])} has no room for it)" if other.full else ""
        lines.append(f"{other.resource} request {old} -> {new}: {case.name(other.winner)} wins{why}")
    for line in lines or ["nothing: no change of a single weight or request lets another node win outright"]:
        page.line(f"  {line}")


def _unmet(page: Page, case: Case, view: View) -> None:
    ways, general = cheapest(case.store, case.found), list(remedies(case.store, case.found))
    if not ways and not general:
        return
    page.heading("WHAT WOULD MAKE IT FIT, CHEAPEST FIRST")
    for line in general:
        page.line(f"  {line}")
    possible = [way for way in ways if way.possible]
    for way in possible[: None if view.wide else SHOWN]:
        page.line(f"  {_nodes(case, way)}: {'; '.join(way.needs)}")
    if len(possible) > SHOWN and not view.wide:
        page.line(f"  ... and {counted(len(possible) - SHOWN, 'dearer way')} (-o wide)")
    for way in ways:
        if not way.possible:
            page.line(f"  cannot fit on {_nodes(case, way)}: {'; '.join(way.needs)}")


def _nodes(case: Case, way: Unmet) -> str:
    others = "others" if len(case.found.infeasible) > LOOKED_AT else f"{len(way.nodes) - NODES} more"
    return ", ".join(way.nodes[:NODES]) + (f" (and {others})" if len(way.nodes) > NODES else "")
