"""What runs at each extension point of a profile, against what would run by default."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from stowplan.text import has_errors

if TYPE_CHECKING:
    from stowplan.cli.validate_forms import Subject
    from stowplan.policy.compile import Profile


def show_effective(subjects: Sequence[Subject], minor: int) -> None:
    """Print the merged plugins of every profile that could be compiled."""
    default = default_profile(minor)
    for subject in subjects:
        for profile in profiles_of(subject):
            click.echo(f'{subject.name}: profile "{profile.scheduler_name}" of kube-scheduler 1.{minor}')
            click.echo("\n".join(lines(profile, default)) + "\n")


def profiles_of(subject: Subject) -> Iterator[Profile]:
    """The profiles of a file that compile."""
    for examined in subject.examined:
        if not has_errors(examined.diagnostics):
            yield from examined.profiles


def default_profile(minor: int) -> Profile:
    """The profile of a kube-scheduler without a configuration."""
    from stowplan.policy.compile import examine
    from stowplan.policy.releases import plugins_of

    return examine(None, plugins_of(minor)).profiles[0]


def lines(profile: Profile, default: Profile) -> Iterator[str]:
    """A line for each point that is as by default, else one for each of its plugins: `+` new, `-` gone, old → new weight."""
    for point, names in profile.points.items():
        before = default.points.get(point, ())
        if not names and not before:
            continue
        weights, old = _weights(profile, point), _weights(default, point)
        if names == before and weights == old:
            yield f"  {point:<18} {', '.join(_one(name, weights) for name in names)}"
            continue
        yield f"  {point}" if names else f"  {point:<18} nothing"
        for name in names:
            mark = "+" if name not in before else " "
            changed = name in before and weights.get(name) != old.get(name)
            shown = f"{name} {old[name]} → {weights[name]}" if changed else _one(name, weights)
            yield f"    {mark} {shown}"
        yield from (f"    - {_one(name, old)}" for name in before if name not in names)


def as_json(profiles: Iterable[Profile]) -> dict[str, Any]:
    """Profile -> extension point -> [plugin, weight] in running order; the weight is null where nothing is weighed."""
    return {
        profile.scheduler_name: {
            point: [[name, _weights(profile, point).get(name)] for name in names]
            for point, names in profile.points.items()
            if names
        }
        for profile in profiles
    }


def _weights(profile: Profile, point: str) -> Mapping[str, float]:
    return {"score": profile.weights, "placementScore": profile.placement_weights}.get(point, {})


def _one(name: str, weights: Mapping[str, float]) -> str:
    return f"{name} {weights[name]}" if name in weights else name
