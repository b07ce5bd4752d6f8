"""The last good policy in a file of this process' own, for a start at which the text to follow is bad or not there."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from stowplan.edge.aside import Aside
from stowplan.edge.configurations import sources, write_whole
from stowplan.edge.logs import ROOT, say
from stowplan.edge.policies.examine import Offer
from stowplan.edge.policies.keeper import Accepted, Refusal
from stowplan.text import Diagnostic, Source

PATIENCE = 0.2
"""Seconds that decisions wait for the file system, once a policy; if it hangs, the text is written when it does no more."""
_log = logging.getLogger(f"{ROOT}.policy")


@dataclass(slots=True)
class LastGood:
    """A `Listener` of the keeper that writes each policy in force to a file."""

    path: str
    _aside: Aside = field(default_factory=Aside)

    def read(self) -> Offer | None:
        """What was in force last; None where nothing was kept."""
        (found,) = sources([self.path])
        return Offer(found) if isinstance(found, Source) else None

    def accepted(self, now: Accepted) -> None:
        text = now.offer.source.text
        if not text or now.offer.source.name == self.path:
            return
        self._aside.begin(lambda: self._keep(text))
        if not self._aside.wait(PATIENCE):
            say(_log, logging.WARNING, "the last good policy is not kept yet", file=self.path)

    def _keep(self, text: str) -> None:
        try:
            if not Path(self.path).exists():
                Path(self.path).touch(mode=0o600)
            write_whole(self.path, text.encode())
        except OSError as error:
            say(_log, logging.WARNING, "the last good policy cannot be kept", file=self.path, message=error.strerror or str(error))

    def tried(self, now: Accepted, found: tuple[Diagnostic, ...]) -> None:
        """Nothing: it is kept already."""

    def rejected(self, refusal: Refusal, now: Accepted | None) -> None:
        """Nothing: what is there is good."""

    def lost(self, why: str) -> None:
        """Nothing: now it may be needed."""
