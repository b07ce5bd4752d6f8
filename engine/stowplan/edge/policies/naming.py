"""How a policy is called: by the hash of its document, which is the same everywhere, and by numbers beside it.

The version is its number in the history, which all replicas share and restarts do not change; the generation counts the policies
that one process has had in force.
"""

from __future__ import annotations


def named(generation: int, digest: str, version: int | None = None) -> str:
    """`version 8 (generation 4 here, hash 5a54a33df7a4)`, or without the version where that is not known."""
    if version is None:
        return f"generation {generation}" + (f", hash {digest}" if digest else "")
    return f"version {version} (generation {generation} here, hash {digest})"
