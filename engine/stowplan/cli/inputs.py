"""Reads what `--policy` and `--cluster` name, with a bar while that takes long."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from stowplan.cli.options import NOW
from stowplan.cli.progress import Bar

if TYPE_CHECKING:
    from stowplan.edge.load import Report
    from stowplan.policy.compile import Policy
    from stowplan.state import Store


@dataclass(frozen=True, slots=True)
class Inputs:
    """A policy, a cluster, and what the dump held."""

    policy: Policy
    store: Store
    report: Report


def load(policy: str | None, clusters: Sequence[str], keep: Sequence[str] = ()) -> Inputs:
    """The values of `--policy` and `--cluster`, read; pods named in `keep` with their whole objects.

    Raises PolicyError and ClusterError.
    """
    check((policy, *clusters))
    compiled = compiled_policy(policy)
    return Inputs(compiled, *read(clusters, keep))


def check(paths: Iterable[str | None]) -> None:
    """Refuse what cannot be meant, before anything is read."""
    if "" in paths:
        raise click.UsageError("an empty path: is a variable of your script not set?")


def compiled_policy(path: str | None) -> Policy:
    """The policy of a file; None: kube-scheduler's defaults. Raises PolicyError."""
    # linear algebra threads are never used here, and starting them takes longer than a small command
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from stowplan.edge.configurations import read_policy
    from stowplan.edge.load import load_policy

    return load_policy() if path is None else read_policy(path)


def read(clusters: Sequence[str], keep: Sequence[str] = ()) -> tuple[Store, Report]:
    """The value of `--cluster`, read, at the moment that `--now` names. Raises ClusterError."""
    from stowplan.edge.load import read_cluster

    with Bar("reading the cluster", _bytes(clusters)) as bar:
        store, report = read_cluster(clusters, bar.advance, keep)
    context = click.get_current_context(silent=True)
    if context is not None and NOW in context.meta:
        store.set_now(context.meta[NOW])
    return store, report


def _bytes(clusters: Sequence[str]) -> int | None:
    """Size of all inputs if they are plain files."""
    paths = [Path(path) for path in clusters]
    try:
        return sum(path.stat().st_size for path in paths) if all(path.is_file() for path in paths) else None
    except OSError:
        return None
