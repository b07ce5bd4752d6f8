"""The last good policy in a file of this process' own, for a start at which the text to follow is bad or not there."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from stowplan.edge.configurations import write_whole
from stowplan.edge.logs import ROOT, say
from stowplan.edge.policies.examine import Offer
from stowplan.edge.policies.keeper import Accepted, Refusal
from stowplan.text import Source

_log = logging.getLogger(f"{ROOT}.policy")


@dataclass(slots=True)
class LastGood:
    """A `Listener` of the keeper that writes each policy in force to a file."""

    path: str

    def read(self) -> Offer | None:
        """What was in force last; None where nothing was kept."""
        try:
            text = Path(self.path).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None
        return Offer(Source(self.path, text)) if text.strip() else None

    def accepted(self, now: Accepted) -> None:
        text = now.offer.source.text
        if not text or now.offer.source.name == self.path:
            return
        try:
            if not Path(self.path).exists():
                Path(self.path).touch(mode=0o600)
            write_whole(self.path, text.encode())
        except OSError as error:
            say(_log, logging.WARNING, "the last good policy cannot be kept", file=self.path, message=error.strerror or str(error))

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        """Nothing: what is there is good."""

    def lost(self, why: str) -> None:
        """Nothing: now it may be needed."""
