"""What the pages of a scheduler and its files look like, as far as it is shown: other JSON is refused before it is shown.

Members that are not listed may be there: a scheduler of another version has others.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict, TypeVar

import msgspec

from stowplan.cli.tables import printable

Shape = TypeVar("Shape")
Moment = str | float
MOST = 500
"""Characters of what others say that are shown."""
Bound = Annotated[str, msgspec.Meta(pattern=r"^(\+Inf|\d+(\.\d+)?(e[+-]?\d+)?)$")]


class WrongShapeError(ValueError):
    """It is something else; the text says where that shows."""


class Standing(TypedDict):
    """Of every page: whether this replica leads, and who does."""

    leads: NotRequired[bool]
    leader: NotRequired[str]


class Score(TypedDict):
    raw: float
    normalized: float
    weighted: float


class Candidate(TypedDict):
    node: str
    total: float
    scores: dict[str, Score]


class Rejection(TypedDict):
    reason: str
    plugin: str
    nodes: int
    examples: list[str]


class PolicyName(TypedDict):
    generation: int
    hash: NotRequired[str]
    version: NotRequired[int]


class Record(TypedDict):
    """A `Decision`."""

    pod: str
    time: Moment
    profile: str
    policy: PolicyName
    attempt: int
    result: str
    detailed: bool
    node: NotRequired[str]
    score: NotRequired[float]
    feasible: NotRequired[int]
    tied: NotRequired[int]
    message: NotRequired[str]
    victims: NotRequired[list[str]]
    candidates: NotRequired[list[Candidate]]
    audit: NotRequired[dict[str, str]]
    ruleErrors: NotRequired[dict[str, str]]
    rejected: NotRequired[list[Rejection]]


class DecisionList(Standing):
    since: Moment | None
    items: list[Record]


class WaitingPod(TypedDict):
    pod: str
    state: str
    attempts: NotRequired[int]
    since: NotRequired[Moment]
    nextTry: NotRequired[Moment]
    message: NotRequired[str]
    plugins: NotRequired[list[str]]
    node: NotRequired[str]
    stage: NotRequired[str]


class Queue(Standing):
    synced: bool
    counts: dict[str, int]
    total: int
    items: list[WaitingPod]
    shadow: NotRequired[bool]


class Times(TypedDict):
    mean: float
    max: float
    le: dict[Bound, int]


class Margin(TypedDict):
    decisions: int
    mean: float


class Version(TypedDict):
    placed: int
    pending: int
    waiting: dict[str, int]
    attempts: dict[str, int]
    secondsToPlace: NotRequired[Times]
    margin: NotRequired[Margin]


class Versions(TypedDict):
    stable: Version
    candidate: Version


class Nodes(TypedDict):
    candidate: int
    total: int


class Rollout(TypedDict):
    profile: str
    percent: float
    versions: Versions
    match: NotRequired[str]
    nodes: NotRequired[Nodes]


class Rejected(TypedDict):
    time: Moment
    source: str
    errors: list[str]


class PolicyStatus(Standing):
    generation: int | None
    hash: str | None
    source: NotRequired[str]
    version: NotRequired[int]
    since: NotRequired[Moment]
    waits: NotRequired[str]
    profiles: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    unserved: NotRequired[dict[str, int]]
    rejected: NotRequired[Rejected]
    trouble: NotRequired[str]
    rollout: NotRequired[Rollout]


class Disagreement(TypedDict):
    time: Moment
    pod: str
    kind: str
    theirs: str
    ours: str
    explanation: str


class ShadowReport(TypedDict):
    kind: Literal["ShadowReport"]
    outcomes: dict[str, int]
    agreement: float | None
    disagreements: list[Disagreement]


def parsed(text: bytes) -> Any:
    """The value of a JSON text. Raises WrongShapeError."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        shown = words(text[:40].decode(errors="replace"))
        if not shown:
            raise WrongShapeError("nothing at all") from None
        what = "JSON that ends early" if "truncated" in str(error) and shown[0] in "{[" else "no JSON"
        raise WrongShapeError(f'{what}: it begins with "{shown}"') from None


def checked(found: Any, shape: type[Shape]) -> Any:
    """The value, with all its members, if it has this shape. Raises WrongShapeError."""
    try:
        msgspec.convert(found, shape)
    except (msgspec.ValidationError, RecursionError) as error:
        raise WrongShapeError(f"members that it should not: {words(str(error))}") from None
    return found


def words(text: str) -> str:
    """What somebody else has said, on one line that no terminal acts upon."""
    line = printable(" ".join(text.split()))
    return line if len(line) <= MOST else f"{line[:MOST]} ..."
