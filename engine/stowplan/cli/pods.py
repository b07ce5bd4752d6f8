"""Finds the pods that a command names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from stowplan.policy.subjects import Subject
    from stowplan.state import Store


class PodError(click.ClickException):
    """No pod, or more than one, has the name that was given."""

    exit_code = 2


def find(store: Store, name: str) -> Subject:
    """The pod called `namespace/name`, or just `name` where that is unique; a name that is wrong is wrong usage."""
    from stowplan.policy import subjects

    try:
        return subjects.find(store, name)
    except subjects.UnknownPodError as error:
        raise PodError(str(error)) from None
