"""The policy as a file on a disk that all schedulers share: a mounted ConfigMap, or a file that is written in steps.

Times of files are those of the virtual clock, or what a look finds would depend on this machine.
"""

import os
import shutil
from pathlib import Path

NAME = "policy.yaml"


class Mount:
    """`sort`: "volume" or "file". `changed` is called whenever another whole text, or none (None), can be read."""

    def __init__(self, folder: str, sort: str, clock, changed):
        self.folder, self.sort, self.clock, self.changed = Path(folder), sort, clock, changed
        self.path = self.folder / NAME
        self.text: str | None = None
        self.edits = 0
        if sort == "volume":
            self._publish(None)
            self.path.symlink_to(f"..data/{NAME}")

    def put(self, text: str | None, share: float = 0.0, pause: float = 0.0) -> None:
        """The text from now on; of a file this share at first, and the rest after a pause."""
        self.edits += 1
        if self.sort == "volume":
            self._publish(text)
        elif text is None:
            self.path.unlink(missing_ok=True)
        elif pause and text:
            self._write(text[: int(len(text) * share)])
            self.clock.say("world: the policy is half written")
            self.clock.after(pause, self._rest, text, self.edits)
            return
        else:
            self._write(text)
        self._whole(text)

    def _rest(self, text: str, edit: int) -> None:
        if edit == self.edits:  # else somebody else writes it by now
            self._write(text)
            self._whole(text)

    def _whole(self, text: str | None) -> None:
        self.text = text
        self.changed()

    def _write(self, text: str) -> None:
        self.path.write_text(text)
        self._stamp(self.path)

    def _publish(self, text: str | None) -> None:
        """As the kubelet does it."""
        folder, turned = self.folder / f"..{self.edits}", self.folder / "..data_tmp"
        folder.mkdir()
        if text is not None:
            (folder / NAME).write_text(text)
            self._stamp(folder / NAME)
        turned.symlink_to(folder.name)
        turned.replace(self.folder / "..data")
        shutil.rmtree(self.folder / f"..{self.edits - 1}", ignore_errors=True)

    def _stamp(self, path: Path) -> None:
        now = int(self.clock.wall * 1e9)
        os.utime(path, ns=(now, now))
