"""Timestamps and durations: text as Go reads and writes it, arithmetic, parts in a time zone.

A timestamp lies in the years 1 to 9999, a duration fits 64 bits of nanoseconds; what does not is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from stowplan.cel.errors import CelError
from stowplan.cel.library import arrays
from stowplan.cel.overloads import Overload, declare
from stowplan.cel.values import INT_MAX, INT_MIN, Duration, Timestamp

SECOND = 10**9
_LEAST, _MOST = -62135596800 * SECOND, 253402300800 * SECOND - 1
_RFC3339 = re.compile(r"(\d{4})-(\d{2})-(\d{2})T(\d{1,2}):(\d{2}):(\d{2})(?:[.,](\d+))?(?:Z|([+-])(\d{2}):(\d{2}))", re.ASCII)
_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_at(ns: int) -> Timestamp:
    """The timestamp, or the error that it is out of range."""
    if _LEAST <= ns <= _MOST:
        return Timestamp(ns)
    raise CelError("timestamp overflow")


def duration_of(ns: int) -> Duration:
    """The duration, or the error that it is out of range."""
    if INT_MIN <= ns <= INT_MAX:
        return Duration(ns)
    raise CelError("duration overflow")


def _leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""
    year -= month <= 2
    era, within = divmod(year, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146097 + within * 365 + within // 4 - within // 100 + of_year - 719468


def _civil_from_days(days: int) -> tuple[int, int, int]:
    days += 719468
    era, within = divmod(days, 146097)
    year = (within - within // 1460 + within // 36524 - within // 146096) // 365
    of_year = within - (365 * year + year // 4 - year // 100)
    part = (5 * of_year + 2) // 153
    month = part + 3 if part < 10 else part - 9
    return year + era * 400 + (month <= 2), month, of_year - (153 * part + 2) // 5 + 1


def parse_timestamp(text: str) -> Timestamp:
    """The moment an RFC 3339 text names."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise CelError(f'cannot parse "{text[:60]}" as a timestamp')
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    fraction, sign, zone_hour, zone_minute = match.groups()[6:]
    days = _DAYS[month - 1] + (month == 2 and _leap(year)) if 1 <= month <= 12 else 0
    if not (1 <= day <= days and hour < 24 and minute < 60 and second < 60):
        raise CelError(f'timestamp "{text[:60]}" is out of range')
    offset = 0
    if sign:
        if int(zone_hour) > 24 or int(zone_minute) > 60:  # Go's bounds, which are one too wide
            raise CelError(f'timestamp "{text[:60]}" has a time zone out of range')
        offset = (int(zone_hour) * 3600 + int(zone_minute) * 60) * (1 if sign == "+" else -1)
    seconds = _days_from_civil(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return timestamp_at(seconds * SECOND + int((fraction or "")[:9].ljust(9, "0")))


def show_timestamp(value: Timestamp) -> str:
    """RFC 3339 in UTC with as many decimals as needed."""
    seconds, nano = divmod(value.ns, SECOND)
    days, rest = divmod(seconds, 86400)
    year, month, day = _civil_from_days(days)
    fraction = f".{nano:09d}".rstrip("0") if nano else ""
    return f"{year:04d}-{month:02d}-{day:02d}T{rest // 3600:02d}:{rest // 60 % 60:02d}:{rest % 60:02d}{fraction}Z"


def parse_duration(text: str) -> Duration:
    """The duration as Go writes it: `1h30m`, `1.5s`, `-2ms`, `0`."""
    body = text[1:] if text[:1] in ("+", "-") else text
    if body == "0":
        return Duration(0)
    total, position = 0, 0
    while body and position < len(body):
        match = _PART.match(body, position)
        if match is None or not (match[1] or match[2]) or len(match[0]) > 60:
            break
        unit = _UNITS[match[3]]
        total += int(match[1] or 0) * unit
        if match[2]:
            total += int(match[2]) * unit // 10 ** len(match[2])
        position = match.end()
    if not body or position < len(body):
        raise CelError(f'invalid duration "{text[:60]}"')
    if total > INT_MAX + (text[0] == "-"):
        raise CelError(f'invalid duration "{text[:60]}": it does not fit 64 bits of nanoseconds')
    return Duration(-total if text[0] == "-" else total)


def show_duration(value: Duration) -> str:
    """Seconds with a fraction, as cel-go writes them: `3730s`, `1.5s`."""
    whole, nano = divmod(abs(value.ns), SECOND)
    seconds = whole + nano / 1e9  # a double, as upstream: large durations lose their last digits
    text = f"{Decimal(repr(seconds)):f}".removesuffix(".0")
    return f"{'-' if value.ns < 0 else ''}{text}s"


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    if name == "Local" or name.startswith("/") or ".." in name or "\\" in name:
        raise CelError(f"unknown time zone {name}")
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # ZoneInfoNotFoundError is a KeyError
        raise CelError(f"unknown time zone {name}") from None


_SIGNED = re.compile(r"[+-]?[0-9]{1,9}", re.ASCII)


def _offset(seconds: int, zone: str) -> int:
    """The offset from UTC in seconds that holds in the zone at that moment."""
    if zone in ("", "UTC"):
        return 0
    hours, colon, minutes = zone.partition(":")
    if colon:
        if not _SIGNED.fullmatch(hours) or not _SIGNED.fullmatch(minutes):
            raise CelError(f'"{zone[:60]}" is no offset from UTC')
        return (int(hours) * 60 + (-int(minutes) if zone[0] == "-" else int(minutes))) * 60
    rules = _zone(zone)
    try:
        shift = (_EPOCH + timedelta(seconds=seconds)).astimezone(rules).utcoffset()
    except OverflowError:  # the first and last day of the calendar
        shift = None
    return int(shift.total_seconds()) if shift is not None else 0


def _calendar(part: Callable[[int, int, int, int], int]) -> Callable[..., int]:
    """A part of the date; it gets year, month, day and days since 1970."""

    def kernel(moment: Timestamp, zone: str = "") -> int:
        seconds = moment.ns // SECOND
        days = (seconds + _offset(seconds, zone)) // 86400
        return part(*_civil_from_days(days), days)

    return kernel


def _clock(part: Callable[[int], int]) -> Callable[..., int]:
    """A part of the time of day; it gets seconds since midnight."""

    def kernel(moment: Timestamp, zone: str = "") -> int:
        seconds = moment.ns // SECOND
        return part((seconds + _offset(seconds, zone)) % 86400)

    return kernel


def _milliseconds(moment: Timestamp, zone: str = "") -> int:
    _offset(0, zone)
    return moment.ns % SECOND // 10**6


_PARTS: dict[str, tuple[Callable[..., int], str]] = {
    "getFullYear": (_calendar(lambda y, _m, _d, _n: y), "the year"),
    "getMonth": (_calendar(lambda _y, m, _d, _n: m - 1), "the month, from 0"),
    "getDayOfYear": (_calendar(lambda y, _m, _d, n: n - _days_from_civil(y, 1, 1)), "the day of the year, from 0"),
    "getDayOfMonth": (_calendar(lambda _y, _m, d, _n: d - 1), "the day of the month, from 0"),
    "getDate": (_calendar(lambda _y, _m, d, _n: d), "the day of the month, from 1"),
    "getDayOfWeek": (_calendar(lambda _y, _m, _d, n: (n + 4) % 7), "the day of the week, Sunday is 0"),
    "getHours": (_clock(lambda s: s // 3600), "the hour"),
    "getMinutes": (_clock(lambda s: s // 60 % 60), "the minute"),
    "getSeconds": (_clock(lambda s: s % 60), "the second"),
    "getMilliseconds": (_milliseconds, "the milliseconds within the second"),
}


def _truncated(unit: int) -> Callable[[Duration], int]:
    return lambda value: abs(value.ns) // unit * (1 if value.ns >= 0 else -1)


def _parts() -> list[Overload]:
    found: list[Overload] = []
    for name, (kernel, doc) in _PARTS.items():
        found += [
            declare(f"timestamp.{name}() -> int", kernel, f"{doc}, in UTC"),
            declare(f"timestamp.{name}(string) -> int", kernel, f"{doc}, in a time zone"),
        ]
    units = {"getHours": 3600 * SECOND, "getMinutes": 60 * SECOND, "getSeconds": SECOND, "getMilliseconds": 10**6}
    for name, unit in units.items():
        found.append(declare(f"duration.{name}() -> int", _truncated(unit), "the whole duration in this unit, rounded toward zero"))
    return found


def _from_seconds(value: int) -> Timestamp:
    return timestamp_at(value * SECOND)


def _shift(moment: Any, by: Any) -> Timestamp:
    return timestamp_at(moment.ns + by.ns)


MOMENTS = (
    declare("timestamp(timestamp) -> timestamp", lambda v: v, "the same"),
    declare("timestamp(string) -> timestamp", parse_timestamp, "the moment an RFC 3339 text names"),
    declare("timestamp(int) -> timestamp", _from_seconds, "seconds since 1970"),
    declare("duration(duration) -> duration", lambda v: v, "the same"),
    declare("duration(string) -> duration", parse_duration, "a duration such as 1h30m, 1.5s or -2ms"),
    declare("string(timestamp) -> string", show_timestamp, "RFC 3339 in UTC"),
    declare("string(duration) -> string", show_duration, "seconds, such as 90s"),
    declare("_+_(timestamp, duration) -> timestamp", _shift, "a later moment", array=arrays.later),
    declare("_+_(duration, timestamp) -> timestamp", _shift, "a later moment", array=arrays.later),
    declare("_+_(duration, duration) -> duration", lambda a, b: duration_of(a.ns + b.ns), "sum", array=arrays.duration_add),
    declare(
        "_-_(timestamp, duration) -> timestamp", lambda a, b: timestamp_at(a.ns - b.ns), "an earlier moment", array=arrays.earlier
    ),
    declare(
        "_-_(timestamp, timestamp) -> duration",
        lambda a, b: duration_of(a.ns - b.ns),
        "the time between",
        array=arrays.duration_subtract,
    ),
    declare(
        "_-_(duration, duration) -> duration", lambda a, b: duration_of(a.ns - b.ns), "difference", array=arrays.duration_subtract
    ),
    *_parts(),
)
