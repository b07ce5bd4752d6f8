"""Moments as Kubernetes writes them; epoch seconds everywhere else."""

from __future__ import annotations

from datetime import UTC, datetime


def rfc3339(epoch: float) -> str:
    """A metav1.Time: whole seconds."""
    return datetime.fromtimestamp(int(epoch), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rfc3339_micro(epoch: float) -> str:
    """A metav1.MicroTime."""
    return datetime.fromtimestamp(epoch, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def epoch_of(moment: str | float) -> float:
    """Epoch seconds of a moment that was written so, or as a number. Raises ValueError."""
    return datetime.fromisoformat(moment).timestamp() if isinstance(moment, str) else float(moment)
