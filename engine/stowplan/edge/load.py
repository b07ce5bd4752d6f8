"""Inputs to values: cluster dumps to a `Store`, a policy file to a `Policy`.

Everything wrong with the input is collected and raised as one `ClusterError`. What is only strange (a pod on a node that is not
there, a kind that scheduling does not read) is reported beside the store.
"""

from __future__ import annotations

import re
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from stowplan.edge.configurations import opened, read_policy, sources, told
from stowplan.edge.dump import read_dump
from stowplan.edge.foreign import unpacked
from stowplan.edge.place import BrokenTextError, Object, Place
from stowplan.objects import Fact, Node, ObjectError, Pod, Priorities, PriorityClass, Workload, peek, read, with_object
from stowplan.state import Store, collector_off
from stowplan.text import Code, Diagnostic, Severity, render_all, some

if TYPE_CHECKING:
    from stowplan.policy.compile import Policy

SUFFIXES = (".json", ".yaml", ".yml", ".json.gz", ".yaml.gz", ".yml.gz")
STANDARD_INPUT = "-"
EVERY_POD = "*"
"""Stands for all names of pods that run."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_MOST_ERRORS = 20
_TAKES = "load_cluster takes a path, a List as a dict, or an iterable of Kubernetes objects as dicts"
_POLICIES = ("KubeSchedulerConfiguration", "SchedulerPolicy")
_check = msgspec.json.Decoder(msgspec.Raw).decode
_PRIORITY = re.compile(rb'"priority":\s*-?\d')


class ClusterError(ValueError):
    """The cluster cannot be read; `diagnostics` says all that is wrong with it, warnings included."""

    def __init__(self, diagnostics: Iterable[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(render_all(self.diagnostics))


@dataclass(slots=True)
class Report:
    """What an input held: facts by kind, objects of kinds that are not read by kind, and warnings."""

    counts: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    warnings: list[Diagnostic] = field(default_factory=list)


def load_cluster(source: str | Path | Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> Store:
    """The cluster in a dump (its path, or that of a folder), in a list or object as a dict, or in several of those.

    Raises ClusterError.
    """
    if isinstance(source, str | Path):
        return read_cluster([source])[0]
    loader = _Loader()
    with collector_off():
        try:
            for item in _objects(source):
                loader.take_nested(item)
            return loader.finish()[0]
        except RecursionError:
            raise ClusterError([_error("an object or list holds itself, or is nested too deeply")]) from None
        except msgspec.DecodeError as error:
            raise ClusterError([_error(f"an object is no JSON: {error}")]) from None


def _objects(source: Any) -> Iterator[Object]:
    """The objects or lists that a caller hands over; one error for what holds anything else."""
    several = isinstance(source, Iterable) and not isinstance(source, bytes | Mapping)
    for item in source if several else (source,):
        if not isinstance(item, bytes | Mapping):
            raise ClusterError([_error(f"{_TAKES}, not {_show(item)}", Code.WRONG_TYPE)])
        yield item


def read_cluster(
    paths: Iterable[str | Path], progress: Callable[[int], None] | None = None, keep: Iterable[str] = ()
) -> tuple[Store, Report]:
    """The cluster in files, folders (every *.json, *.yaml and *.yml below them), pipes, or `-` for standard input.

    `progress` is told the size of every piece read, in bytes. Running pods named in `keep` (with or without their namespace;
    EVERY_POD: all) keep their whole object, which rules may ask for. Raises ClusterError.
    """
    loader = _Loader(frozenset(keep))
    with collector_off():
        for path in paths:
            loader.read_path(str(path), progress)
        return loader.finish()


def load_policy(source: Mapping[str, Any] | str | Path | None = None, *, strict: bool = True) -> Policy:
    """The policy of a file, of an already parsed document, or (None) kube-scheduler's defaults. Raises PolicyError.

    That is exactly where kube-scheduler fails, as for `stowplan run`. Unless `strict`, it is read as all other commands do, which
    take older versions, configurations inside other documents, and plugins of other projects, left out with a warning.
    """
    from stowplan.policy.compile import PolicyError, load

    if source is None:
        return load(None)
    if isinstance(source, Mapping):
        return load(source) if strict else told(load(source, compat=False))
    if not isinstance(source, str | Path):
        raise PolicyError([_error(f"a policy is a path, a dict or None, not {_show(source)}", Code.WRONG_TYPE)])
    if not strict:
        return read_policy(str(source))
    (text,) = sources([str(source)])
    if isinstance(text, Diagnostic):
        raise PolicyError([text])
    return load(text)


class _Loader:
    """A store being filled, and what is wrong with the objects so far."""

    def __init__(self, keep: frozenset[str] = frozenset()) -> None:
        self.keep = keep
        self.store = Store()
        self.report = Report()
        self.errors: list[Diagnostic] = []
        self.classes: list[PriorityClass] = []
        self.waiting: list[tuple[Object, Place | None]] = []
        """pods without a priority: their class may come later"""
        self.configured: tuple[Place | None, str] | None = None
        """where a scheduler configuration stands"""

    def read_path(self, path: str, progress: Callable[[int], None] | None) -> None:
        try:
            if path == STANDARD_INPUT:
                self._read(sys.stdin.buffer, "<stdin>", progress)
            elif Path(path).is_dir():
                self._read_folder(path, progress)
            else:
                with opened(path) as stream:
                    self._read(stream, path, progress)
        except OSError as error:
            self._fail(_input_error(path, error))

    def _read_folder(self, folder: str, progress: Callable[[int], None] | None) -> None:
        files = sorted(path for path in Path(folder).rglob("*") if path.name.endswith(SUFFIXES) and not path.is_dir())
        if not files:
            self._fail(_error(f"{folder}: no *.json, *.yaml or *.yml file in this folder", Code.UNREADABLE))
        for file in files:
            if file.exists() and not file.is_file():  # hardly meant, and reading it may never end
                text = f"{file}: passed over, for it is no file"
                self.report.warnings.append(_error(text, Code.UNREADABLE, severity=Severity.WARNING))
            else:
                self.read_path(str(file), progress)

    def _read(self, stream: BinaryIO, name: str, progress: Callable[[int], None] | None) -> None:
        try:
            if not read_dump(unpacked(stream), name, self.take, progress):
                self._fail(_error(f"{name}: the input is empty", Code.EMPTY))
        except BrokenTextError as error:
            self._fail(error.diagnostic)
        except (EOFError, zlib.error) as error:
            self._fail(_error(f"{name}: broken gzip data: {error}", Code.UNREADABLE))

    def take_nested(self, item: Any) -> None:
        """An object, or all objects of a list."""
        kind = item.get("kind") if isinstance(item, Mapping) else None
        if isinstance(kind, str) and kind.endswith("List") and "items" in item:
            if not isinstance(item["items"], list | tuple | None):
                self._fail(_error(f"{kind}: items is no list", Code.WRONG_TYPE))
                return
            for inner in item["items"] or ():
                kindless = kind != "List" and isinstance(inner, Mapping) and "kind" not in inner
                self.take_nested({"kind": kind.removesuffix("List"), **inner} if kindless else inner)
        else:
            self.take(item, None)

    def take(self, item: Any, place: Place | None) -> None:
        """Add an object to the store, or its error to the errors; DecodeError if it is bytes and no JSON."""
        if not isinstance(item, bytes | Mapping):
            self._fail(_error(f"expected an object, not {_show(item)}", Code.WRONG_TYPE, place))
            return
        try:
            if _lacks_priority(item) and _kind(item) == "Pod":
                self.waiting.append((item, place))
                return
            fact = read(item)
        except ObjectError as error:
            if isinstance(item, bytes):
                _check(item)  # if the JSON is broken, that is the message
            self._fail(_object_error(error, place))
            return
        if fact is None:
            if isinstance(item, bytes):
                _check(item)  # nobody has looked at more than its head
            self._skip(item, place)
        else:
            self._add(self._whole(fact, item), place)

    def _skip(self, item: Object, place: Place | None) -> None:
        """An object of a kind that is not read, or the API server's answer that there is none."""
        kind = _kind(item)
        if kind == "Status":
            told = msgspec.json.decode(item) if isinstance(item, bytes) else item
            said = f": {told['message']}" if isinstance(told, Mapping) and told.get("message") else ""
            self._fail(_error(f"this is no dump but a Status, with which the API server refuses a request{said}", place=place))
        if kind in _POLICIES:
            self.configured = (place, "kind")
        self.report.skipped[kind] += 1

    def _whole(self, fact: Fact, item: Object) -> Fact:
        """The fact with its whole object, if somebody wants to keep that."""
        named = isinstance(fact, Pod) and fact.node_name and not self.keep.isdisjoint((EVERY_POD, fact.name, fact.key))
        return with_object(fact, item) if named and isinstance(fact, Pod) else fact

    def _add(self, fact: Fact, place: Place | None) -> None:
        self.report.counts[fact.kind if isinstance(fact, Workload) else type(fact).__name__] += 1
        if isinstance(fact, Pod):
            key = fact.key
            if key in self.store.pending or self.store.place_of(key) is not None:
                text = f"Pod {key} is there more than once: the last one counts"
                self.report.warnings.append(_error(text, Code.DUPLICATE, place, "metadata.name", Severity.WARNING))
        elif isinstance(fact, Node):
            if fact.name in self.store.row_of:
                self._fail(_error(f"Node {fact.name} is there twice", Code.DUPLICATE, place, "metadata.name"))
                return
        elif isinstance(fact, PriorityClass):
            self.classes.append(fact)
        self.store.add(fact)

    def finish(self) -> tuple[Store, Report]:
        """The store, once nothing more comes."""
        priorities = Priorities(self.classes)
        unknown: dict[str, list[str]] = {}
        for item, place in self.waiting:
            try:
                fact = self._classless(item, priorities, unknown)
            except ObjectError as error:
                self._fail(_object_error(error, place))
            else:
                if fact is not None:
                    self._add(self._whole(fact, item), place)
        for missing, keys in unknown.items():
            text = f"there is {missing} for {some(keys, 1)}: priority 0 is taken; add priorityclasses to the dump"
            self.report.warnings.append(_error(text, Code.INCOMPLETE, severity=Severity.WARNING))
        self._look_around()
        self.store.set_now(time.time())
        if self.errors:
            raise ClusterError([*self.errors, *self.report.warnings])
        return self.store, self.report

    def _classless(self, item: Object, priorities: Priorities, unknown: dict[str, list[str]]) -> Fact | None:
        """A pod without a priority; one whose class is missing is noted in `unknown`."""
        try:
            return read(item, priorities)
        except ObjectError as error:
            if error.path != "spec.priorityClassName":
                raise
            fact = read(item)
            missing = error.message.rpartition("there is ")[2]
            unknown.setdefault(missing, []).append(fact.key if isinstance(fact, Pod) else "")
            return fact

    def _look_around(self) -> None:
        """Say what no single object shows. Beside errors nothing: what seems to be missing may be what could not be read."""
        if self.errors:
            return
        if self.configured is not None and not self.report.counts:
            self._fail(
                _error("a scheduler configuration is no cluster: give it with --policy", Code.OTHER_OBJECT, *self.configured)
            )
            return
        for name, pods in sorted(self.store.strays.items()):
            first = min(pods)
            who = f"pod {first} is" if len(pods) == 1 else f"{len(pods)} pods ({first} is one) are"
            self._warn(f"{who} bound to node {name}, which is not there")
        if not self.store.nodes:
            self._warn("the dump holds no nodes: add nodes")
        effects = {taint.effect: node.name for node in self.store.nodes for taint in node.taints if taint.effect not in EFFECTS}
        for effect, name in sorted(effects.items()):
            text = f'node {name} has a taint of effect "{effect}", which counts as none: effects are {", ".join(EFFECTS)}'
            self.report.warnings.append(_error(text, Code.UNKNOWN_EFFECT, severity=Severity.WARNING))

    def _warn(self, text: str) -> None:
        self.report.warnings.append(_error(text, Code.MISSING_NODE, severity=Severity.WARNING))

    def _fail(self, diagnostic: Diagnostic) -> None:
        self.errors.append(diagnostic)
        if len(self.errors) >= _MOST_ERRORS:
            raise ClusterError([*self.errors, _error(f"only the first {_MOST_ERRORS} errors are shown", severity=Severity.INFO)])


def _lacks_priority(item: Object) -> bool:
    if isinstance(item, bytes):
        # found at once: the search that knows no patterns is the fast one
        at = item.find(b'"priority":')
        return at < 0 or _PRIORITY.search(item, at) is None
    spec = item.get("spec")
    return not isinstance(spec, Mapping) or spec.get("priority") is None


def _kind(item: Object) -> str:
    return peek(item)[0] if isinstance(item, bytes) else str(item.get("kind"))


def _show(item: Any) -> str:
    return "an empty item" if item is None else f"{item!r:.40}"


def _object_error(error: ObjectError, place: Place | None) -> Diagnostic:
    missing = {"kind": Code.NO_KIND, "metadata.name": Code.REQUIRED}
    return _error(error.message, missing.get(error.path, Code.INVALID), place, error.path)


def _input_error(path: str, error: OSError | ValueError) -> Diagnostic:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return _error(f"{path}: {reason[:1].lower()}{reason[1:]}", Code.UNREADABLE)


def _error(
    text: str, code: Code = Code.INVALID, place: Place | None = None, path: str = "", severity: Severity = Severity.ERROR
) -> Diagnostic:
    return Diagnostic(code, severity, text, place.span(path) if place else None)
