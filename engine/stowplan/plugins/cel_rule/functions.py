"""Functions that only rules have: topology domains, counting pods, the time of day."""

from __future__ import annotations

import re
from typing import Any

from stowplan.cel.errors import CelError
from stowplan.cel.kinds import BOOL, INT, STRING, TIMESTAMP, Type, list_of
from stowplan.cel.library.moments import MOMENTS
from stowplan.cel.overloads import Kernel, Overload
from stowplan.cel.values import Timestamp
from stowplan.plugins.cel_rule.types import DOMAIN, TEXTS, node_type

_DAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")
_CLOCK = re.compile(r"([01][0-9]|2[0-4]):([0-5][0-9])")
_PART = {overload.name: overload.kernel for overload in MOMENTS if overload.params == (TIMESTAMP, STRING)}


def _minute(text: str) -> int:
    match = _CLOCK.fullmatch(text)
    if match is None or (text > "24:00"):
        raise CelError(f'"{text[:20]}" is no time of day such as 22:30')
    return int(match[1]) * 60 + int(match[2])


def is_between(moment: Timestamp, begin: str, end: str, zone: str) -> bool:
    """Whether the time of day lies in [begin, end), which may go over midnight; the same text twice is the whole day."""
    now: int = _PART["getHours"](moment, zone) * 60 + _PART["getMinutes"](moment, zone)
    first, last = _minute(begin), _minute(end)
    return first <= now < last if first < last else now >= first or now < last


def weekday(moment: Timestamp, zone: str) -> str:
    """The day of the week in a time zone, as three letters."""
    return _DAYS[_PART["getDayOfWeek"](moment, zone)]


def _member(name: str, params: tuple[Type, ...], result: Type, kernel: Kernel, doc: str) -> Overload:
    return Overload(name, True, params, result, kernel, doc)


def _pods(place: Any, labels: Any, namespaces: Any = None) -> int:
    found: int = place.pods(labels, namespaces)
    return found


FUNCTIONS = (
    _member("domain", (node_type(), STRING), DOMAIN, lambda node, key: node.domain(key), "the topology domain that a label names"),
    _member("pods", (DOMAIN, TEXTS), INT, _pods, "how many pods of the pod's namespace have these labels there"),
    _member("pods", (DOMAIN, TEXTS, list_of(STRING)), INT, _pods, "how many pods in these namespaces have these labels there"),
    _member(
        "isBetween",
        (TIMESTAMP, STRING, STRING, STRING),
        BOOL,
        is_between,
        'whether the time of day lies between two times ("22:00", "06:00") in a time zone',
    ),
    _member("weekday", (TIMESTAMP, STRING), STRING, weekday, "Mon, Tue, Wed, Thu, Fri, Sat or Sun in a time zone"),
)
