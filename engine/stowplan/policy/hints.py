"""How much each score of a profile can decide, and which of them want opposite things."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from stowplan.plugins.arguments import NodeResourcesFitArgs, PodTopologySpreadArgs
from stowplan.policy.compile import Profile
from stowplan.profile import Configuration, Origin, Rule, rules_of
from stowplan.profile import Profile as Written
from stowplan.text import Code, Diagnostic, Severity

_LITTLE = 0.04
MAX_SCORE = 100
"""highest score of kube-scheduler's plugins"""
_FIT = "NodeResourcesFit"


def hints(configuration: Configuration, profiles: Sequence[Profile]) -> list[Diagnostic]:
    """Hints about every profile of a configuration that was read from a text."""
    found: list[Diagnostic] = []
    for written, profile in zip(configuration.versions, profiles, strict=True):
        if written.origin is not None:
            found += _shares(profile, written.origin, {rule.name for rule in _plain(written)})
            found += _scales(profile, written)
            found += _opposed(profile, written.origin)
    return found


def shares(profile: Profile) -> dict[str, float]:
    """What part of the highest total each score can give, by plugin."""
    total = sum(abs(profile.weights[name]) for name in profile.points["score"])
    return {name: abs(profile.weights[name]) / total for name in profile.points["score"]} if total else {}


def _plain(written: Written) -> Iterator[Rule]:
    """Scores of rules that are not brought to 0 to 100."""
    return (rule for rule in rules_of(written)[0].rules if rule.score is not None and rule.normalize == "None")


def _shares(profile: Profile, place: Origin, plain: Collection[str]) -> Iterator[Diagnostic]:
    found = shares(profile)
    if not found:
        yield place.diagnostic(Code.SHARES, "nothing scores: a node is picked at random among those that fit", Severity.INFO)
        return
    ordered = sorted(found, key=lambda name: -found[name])
    unless = " if its scores lie between 0 and 100"
    lines = [f"{n}: weight {profile.weights[n]}, {found[n]:.0%}{unless if n in plain else ''}" for n in ordered]
    message = f'what each score of "{profile.scheduler_name}" counts for'
    yield place.diagnostic(Code.SHARES, message, Severity.INFO, *lines)
    little = [name for name in ordered if found[name] < _LITTLE]
    if little:
        message = f"{', '.join(little)} can each change the total by {found[little[0]]:.1%} at most: they hardly ever decide"
        yield place.diagnostic(Code.SMALL_SHARE, message, Severity.INFO)


def _scales(profile: Profile, written: Written) -> Iterator[Diagnostic]:
    """What scores that are not normalised count for: the weight alone does not say it."""
    rules = {rule.name: rule for rule in _plain(written)}
    for name in profile.points["score"]:
        rule, plugin = rules.get(name), profile.plugins.get(name)
        if rule is None or rule.origin is None or plugin is None:
            continue
        from stowplan.policy.scales import spread_of  # noqa: PLC0415 - few files have rules, and CEL takes long to import

        weight = abs(profile.weights[name])
        others = [abs(other) for key, other in profile.weights.items() if key != name and key in profile.points["score"]]
        spread, place = spread_of(plugin), rule.origin.under("score")
        if spread is None:
            message = "the score is not normalised: weight times score is what counts, and the scores may be of any size"
            note = "write normalize: MinMax, or see that scores lie between 0 and 100 as those of kube-scheduler's plugins do"
            yield place.diagnostic(Code.SHARES, message, Severity.INFO, note)
        elif others and spread * weight < _LITTLE * MAX_SCORE * max(others):
            message = f"the score differs by {spread:g} at most, times weight {weight:g}: little beside {_largest(profile, name)}"
            note = f"other scores lie between 0 and {MAX_SCORE}: take a larger weight, or write normalize: MinMax"
            yield place.diagnostic(Code.SMALL_SHARE, message, Severity.INFO, note)
        elif others and spread * weight > MAX_SCORE * sum(others):
            message = f"the score differs by {spread:g}, times weight {weight:g}: it outweighs all other scores together"
            yield place.diagnostic(Code.SHARES, message, Severity.INFO)


def _largest(profile: Profile, name: str) -> str:
    """The score that counts most beside a rule."""
    others = [other for other in profile.points["score"] if other != name]
    largest = max(others, key=lambda other: abs(profile.weights[other]))
    return f"{largest} (0 to {MAX_SCORE}, times {abs(profile.weights[largest]):g})"


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
