"""Extenders about victims: before pods are evicted, those that want a say in it are asked, one after the other.

Upstream asks them within the cycle (`callExtenders`); here other pods are tried meanwhile, so what was found is looked at again
when the last answer is there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stowplan.loop.effects import ConsultVictims, Effect
from stowplan.loop.events import VictimAdvice
from stowplan.loop.ledger import Ledger, Outcome
from stowplan.loop.waiting import Waiting
from stowplan.objects import Pod
from stowplan.plugins.plugin import Code
from stowplan.policy.choose import Choice
from stowplan.policy.compile import Policy
from stowplan.policy.offers import OfferError, Offers, bargainers, claimed, first_offers, picked, present, undone
from stowplan.policy.preempt import Preemption
from stowplan.profile import Extender
from stowplan.state import Store


@dataclass(slots=True)
class Bargain:
    """An attempt that ends with a preemption, and what extenders have left of that."""

    pod: Pod
    choice: Choice
    policy: Policy
    extenders: tuple[Extender, ...]
    """those that are still to answer; the first one is being asked"""
    offers: Offers
    error: str
    moment: tuple[int, int, int]

    def moved(self, ledger: Ledger) -> bool:
        """Whether the cluster is not any more what it was."""
        return self.moment != _moment(ledger.store)


def _moment(store: Store) -> tuple[int, int, int]:
    return store.epoch, len(store.log), store.lookups


def begun(ledger: Ledger, entry: Waiting, choice: Choice) -> list[Effect]:
    """Ask the first extender; nothing where there is none, or nobody to evict."""
    extenders = bargainers(ledger.policy, entry.pod)
    preemption = choice.preemption
    if not extenders or preemption is None or preemption.node is None:
        return []
    profile = ledger.policy.serving(entry.pod, ledger.store).scheduler_name
    offers = first_offers(ledger.policy, profile, preemption)
    entry.bargain = Bargain(entry.pod, choice, ledger.policy, extenders, offers, "", _moment(ledger.store))
    ledger.consulted[entry.pod.uid] = entry
    ledger.outcome = Outcome(entry.pod, "consulting", entry.attempts, ledger.generation)
    return [ConsultVictims(entry.pod, extenders[0], offers)]


def heard(ledger: Ledger, bargain: Bargain, answer: VictimAdvice) -> Effect | None:
    """Take an answer in; the next question, None if there is none."""
    extender, *rest = bargain.extenders
    bargain.extenders = tuple(rest)
    error = answer.error
    if not error:
        try:
            bargain.offers = claimed(extender, answer.claims, bargain.offers, ledger.store)
        except OfferError as wrong:
            error = str(wrong)
    if error and not extender.ignorable:
        bargain.error = error
    if bargain.error or not rest or not bargain.offers:
        return None
    return ConsultVictims(bargain.pod, rest[0], bargain.offers)


def concluded(ledger: Ledger, bargain: Bargain) -> Choice | None:
    """The attempt with the preemption that is left; None if it has to be made anew: under another policy, or as there is room."""
    if ledger.policy is not bargain.policy:
        return None
    before = bargain.choice.preemption
    assert before is not None
    if bargain.error:
        return _with(ledger, bargain, undone(before, Code.ERROR, bargain.error))
    offers = present(bargain.offers, ledger.store)
    if any(not offer.victims for offer in offers.values()):
        return None
    return _with(ledger, bargain, picked(before, offers))


def _with(ledger: Ledger, bargain: Bargain, preemption: Preemption) -> Choice:
    """The choice with another preemption, whose message is the end of its own."""
    choice, before = bargain.choice, bargain.choice.preemption
    assert before is not None
    message = f"{(choice.message or '').removesuffix(before.message)}{preemption.message}"
    refused = None if bargain.moment[0] != ledger.store.epoch else choice.refused  # it is by rows
    return dataclasses.replace(choice, message=message, preemption=preemption, refused=refused)
