"""How much each score of a profile can decide, and which of them want opposite things."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stowplan.plugins.arguments import NodeResourcesFitArgs, PodTopologySpreadArgs
from stowplan.policy.compile import Profile
from stowplan.profile import Configuration, Origin
from stowplan.text import Code, Diagnostic, Severity

_LITTLE = 0.04
_FIT = "NodeResourcesFit"


def hints(configuration: Configuration, profiles: Sequence[Profile]) -> list[Diagnostic]:
    """Hints about every profile of a configuration that was read from a text."""
    found: list[Diagnostic] = []
    for written, profile in zip(configuration.profiles, profiles, strict=True):
        if written.origin is not None:
            found += _shares(profile, written.origin)
            found += _opposed(profile, written.origin)
    return found


def shares(profile: Profile) -> dict[str, float]:
    """What part of the highest total each score can give, by plugin."""
    total = sum(abs(profile.weights[name]) for name in profile.points["score"])
    return {name: abs(profile.weights[name]) / total for name in profile.points["score"]} if total else {}


def _shares(profile: Profile, place: Origin) -> Iterator[Diagnostic]:
    found = shares(profile)
    if not found:
        yield place.diagnostic(Code.SHARES, "nothing scores: a node is picked at random among those that fit", Severity.INFO)
        return
    ordered = sorted(found, key=lambda name: -found[name])
    lines = [f"{name}: weight {profile.weights[name]}, {found[name]:.0%}" for name in ordered]
    message = f'what each score of "{profile.scheduler_name}" counts for'
    yield place.diagnostic(Code.SHARES, message, Severity.INFO, *lines)
    little = [name for name in ordered if found[name] < _LITTLE]
    if little:
        message = f"{', '.join(little)} can each change the total by {found[little[0]]:.1%} at most: they hardly ever decide"
        yield place.diagnostic(Code.SMALL_SHARE, message, Severity.INFO)


def _opposed(profile: Profile, place: Origin) -> Iterator[Diagnostic]:
    fit = profile.args.get(_FIT)
    if _FIT not in profile.weights or not isinstance(fit, NodeResourcesFitArgs) or not _packs(fit):
        return
    weight = profile.weights[_FIT]
    spread = profile.args.get("PodTopologySpread")
    if "PodTopologySpread" in profile.weights and isinstance(spread, PodTopologySpreadArgs) and spread.defaulting_type == "System":
        message = (
            f"{_FIT} (weight {weight}) fills nodes up while PodTopologySpread (weight {profile.weights['PodTopologySpread']}) "
            "spreads the pods of each workload over nodes and zones by default"
        )
        note = "to stop that: defaultingType List without constraints in the args of PodTopologySpread"
        yield place.diagnostic(Code.OPPOSED, message, Severity.INFO, note)
    if "NodeResourcesBalancedAllocation" in profile.weights:
        balance = profile.weights["NodeResourcesBalancedAllocation"]
        message = (
            f"{_FIT} (weight {weight}) fills nodes up while NodeResourcesBalancedAllocation (weight {balance}) "
            "prefers nodes whose cpu and memory are used alike, often emptier ones"
        )
        yield place.diagnostic(Code.OPPOSED, message, Severity.INFO)


def _packs(args: NodeResourcesFitArgs) -> bool:
    """Whether fuller nodes get more."""
    strategy = args.scoring_strategy
    shape = strategy.requested_to_capacity_ratio
    return strategy.type == "MostAllocated" or bool(shape and shape[-1].score > shape[0].score)
