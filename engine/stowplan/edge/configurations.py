"""Texts that may hold configurations: files, folders and standard input, as `Source`s with the name they were given."""

from __future__ import annotations

import io
import os
import re
import select
import stat
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

    from stowplan.policy.compile import Policy
    from stowplan.profile import Tree

from stowplan.text import Code, Diagnostic, Severity, Source, has_errors

STANDARD_INPUT = "-"
UNWRITTEN, SILENT = 10.0, 120.0
"""Seconds to wait until somebody opens a pipe to write, and then for each piece."""
GLANCE = 0.02
LARGEST = 8 * 2**20
"""Bytes; kube-scheduler's own configurations are a thousandth of that."""
GZIP = b"\x1f\x8b"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_SUFFIXES = (".json", ".yaml", ".yml", ".conf", ".config", ".tpl")
_KIND = r"kind[\\\"']*\s*:\s*[\\\"']*"
_MENTIONED = re.compile(rf"{_KIND}(?:KubeSchedulerConfiguration|SchedulerPolicy)\b")
_LEGACY = re.compile(rf"{_KIND}Policy\b")
_RULES = re.compile(r"\b(?:predicates|priorities)\b")


def sources(paths: Iterable[str]) -> Iterator[Source | Diagnostic]:
    """The text of every path in order, an error in place of each that cannot be read.

    A folder stands for the files below it that mention a configuration; hidden folders are passed over, and what is no file (a
    pipe, a socket), with a remark.
    """
    for path in paths:
        if path == STANDARD_INPUT:
            yield _decoded("<stdin>", sys.stdin.buffer.read(LARGEST + 1))
        elif Path(path).is_dir():
            found = [text for text in map(_inside, _below(path)) if not isinstance(text, Source) or _mentions(text.text)]
            yield from found
            if not any(isinstance(text, Source) or text.is_error for text in found):
                yield _unreadable(path, "no scheduler configuration in this folder")
        else:
            yield _file(path)


def changeable(path: str) -> bool:
    """Whether what a path names can be written again: not standard input, and no pipe under another name."""
    return path != STANDARD_INPUT and (not os.path.exists(path) or os.path.isfile(path) or os.path.isdir(path))  # noqa: PTH110, PTH112, PTH113 - a str


def _mentions(text: str) -> bool:
    return bool(_MENTIONED.search(text) or (_LEGACY.search(text) and _RULES.search(text)))


def write_whole(path: str, content: bytes) -> None:
    """Replace a file's content at once: whoever reads it, or is stopped in the middle, has the old or the new one."""
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name}.stowplan")
    try:
        draft.write_bytes(content)
        draft.chmod(target.stat().st_mode)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def read_policy(path: str) -> Policy:
    """The policy of a file as people have it: wrapped, of an older version, with plugins of other projects, which are left out.

    The first configuration in the file is taken; what else is in it, and what is strange, are warnings of the policy. Raises
    PolicyError.
    """
    from stowplan.policy.compile import PolicyError, load
    from stowplan.profile import Table
    from stowplan.profile.unwrap import unwrap

    (source,) = sources([path]) if not Path(path).is_dir() else (_unreadable(path, "is a folder"),)
    if isinstance(source, Diagnostic):
        raise PolicyError([source])
    found, others = unwrap(source)
    first, *more = found
    dumped = _dumped(first.tree)
    if dumped:
        raise PolicyError(
            [_unreadable(source.name, f"this is a cluster dump (kind {dumped}), which is for --cluster, not --policy")]
        )
    if not isinstance(first.tree, Table):
        raise PolicyError(first.diagnostics or load(source).warnings)
    try:
        policy = load(first.tree, compat=False)
    except PolicyError as error:
        raise PolicyError([*first.diagnostics, *error.diagnostics]) from None
    if has_errors(first.diagnostics):  # of the text itself: a key that is written twice
        raise PolicyError([*first.diagnostics, *policy.warnings])
    others += [one.unused() for one in more]
    return replace(policy, warnings=(*first.diagnostics, *others, *told(policy).warnings))


def told(policy: Policy) -> Policy:
    """The policy with warnings also about names that kube-scheduler ignores without a word."""
    return replace(policy, warnings=tuple(_with_ignored(policy)))


def _with_ignored(policy: Policy) -> list[Diagnostic]:
    """The warnings of a policy, and names that `stowplan validate` refuses because kube-scheduler ignores them without a word."""
    from stowplan.policy.lint import lint
    from stowplan.policy.releases import plugins_of
    from stowplan.profile.versions import NEWEST

    found = lint(policy.configuration, tuple(policy.profiles.values()), plugins_of(NEWEST))
    ignored = [replace(finding, severity=Severity.WARNING) for finding in found if finding.is_error]
    places = {finding.span for finding in ignored}
    # what is no plugin any more need not be called unknown too
    return [one for one in policy.warnings if one.code is not Code.UNUSED_ARGS or one.span not in places] + ignored


def _dumped(tree: Tree | None) -> str:
    """The kind of a tree that belongs into a cluster dump, "" for any other; that of an array is the kind of its first item."""
    from stowplan.profile import Items, Leaf, Table

    if isinstance(tree, Items):
        return _dumped(tree.items[0]) if tree.items else ""
    kind = tree.fields.get("kind") if isinstance(tree, Table) else None
    name = kind.value if isinstance(kind, Leaf) and isinstance(kind.value, str) else ""
    return name if name.endswith("List") or name in ("Node", "Pod") else ""


def _below(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(parent, name) for name in sorted(names) if name.endswith(_SUFFIXES))  # noqa: PTH118 - a str


def _inside(path: str) -> Source | Diagnostic:
    """A file of a folder. Anything else was hardly meant, and reading it may never end."""
    if os.path.exists(path) and not os.path.isfile(path):  # noqa: PTH110, PTH113 - a str
        return Diagnostic(Code.UNREADABLE, Severity.INFO, f"{path}: passed over, for it is no file")
    return _file(path)


def _file(path: str) -> Source | Diagnostic:
    try:
        with opened(path) as stream:
            return _decoded(path, stream.read(LARGEST + 1))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _unreadable(path, reason[:1].lower() + reason[1:])


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """A file or pipe to read from. Raises OSError, also for a pipe that nobody writes to, or not for a long time."""
    if stat.S_ISFIFO(os.stat(path).st_mode):  # noqa: PTH116 - a str
        with io.BufferedReader(_Pipe(path)) as buffered:
            yield buffered
    else:
        with Path(path).open("rb") as stream:
            yield stream


class _Pipe(io.RawIOBase):
    """A pipe that is not waited for without end, be it for a writer or for what it writes."""

    def __init__(self, path: str) -> None:
        self._handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        self._written = False

    def readable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._handle

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Raises TimeoutError, which is an OSError."""
        view = memoryview(buffer)
        begun = time.monotonic()
        while (left := begun + (SILENT if self._written else UNWRITTEN) - time.monotonic()) > 0:
            try:
                found = os.read(self._handle, len(view))
            except BlockingIOError:  # somebody has it open, who may take his time
                self._written = True
                select.select([self._handle], [], [], left)
                continue
            if found or self._written:
                self._written = True
                view[: len(found)] = found
                return len(found)
            time.sleep(GLANCE)
        raise TimeoutError(f"this is a pipe, and for {SILENT if self._written else UNWRITTEN:g} s nothing has come out of it")


def _decoded(name: str, content: bytes) -> Source | Diagnostic:
    if content.startswith(GZIP):
        return _unreadable(name, "compressed by gzip: gunzip it first")
    if len(content) > LARGEST:
        return _unreadable(name, f"larger than {LARGEST // 2**20} MiB: no configuration is, but maybe a dump, for --cluster")
    # kube-scheduler's reader takes UTF-16 with a byte order mark too, which is what PowerShell writes
    encoding = "utf-16" if content.startswith(UTF_16) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        return _unreadable(name, f"not {encoding.removesuffix('-sig').upper()} at byte {error.start}")
    return Source(name, text) if text.strip() else _unreadable(name, "the input is empty")


def _unreadable(name: str, reason: str) -> Diagnostic:
    return Diagnostic(Code.UNREADABLE, Severity.ERROR, f"{name}: {reason}")
