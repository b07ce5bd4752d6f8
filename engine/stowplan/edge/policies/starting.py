"""The policy that a scheduler starts with."""

from __future__ import annotations

from stowplan.edge.policies.examine import strict
from stowplan.edge.policies.files import at_rest
from stowplan.policy.compile import Policy, PolicyError, load
from stowplan.text import Diagnostic


def first_policy(path: str | None) -> Policy:
    """The policy of a file as it is at rest, read as strictly as later ones are, or (None) kube-scheduler's defaults.

    Raises PolicyError.
    """
    if path is None:
        return load(None)
    found = at_rest(path)
    if isinstance(found, Diagnostic):
        raise PolicyError([found])
    return strict(found)
