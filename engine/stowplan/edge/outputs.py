"""Files that a scheduler writes for people: looked at before it starts, written without waiting for longer than some seconds."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from stowplan.edge.aside import within

SECONDS = 5.0
"""How long a file system may take."""


def check(path: str, *, whole: bool = False) -> None:
    """Raises OSError where this cannot be written; changes nothing. `whole`: it is replaced by another file.

    A pipe that nobody reads yet is fine.
    """
    within(SECONDS, lambda: _try(path, whole))


def write(path: str, content: bytes) -> None:
    """Put this in place of what is there. Raises OSError, also when it takes too long."""

    def put() -> None:
        Path(path).write_bytes(content)

    within(SECONDS, put)


def _try(path: str, whole: bool) -> None:
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 - a str
    except FileNotFoundError:
        _create(path)
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if stat.S_ISREG(mode):
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC))
    elif whole or stat.S_ISSOCK(mode) or stat.S_ISBLK(mode):
        raise OSError(errno.EINVAL, "this is no file", path)
    elif not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _create(path: str) -> None:
    """Make the file and take it away again: nothing else tells whether that can be done."""
    target = os.path.realpath(path)
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    os.unlink(target)  # noqa: PTH108 - a str
