"""`format.X().validate(text)`: Kubernetes' named formats, with the texts of its validation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type
from stowplan.cel.library.moments import parse_timestamp
from stowplan.cel.library.url import request_fault
from stowplan.cel.overloads import declare
from stowplan.cel.values import NONE, Optional
from stowplan.objects.qualified import key_faults, value_faults

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    f"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and "
    f"end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '{_LABEL_1035}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME = re.compile(r"(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})", re.ASCII)

Faults = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class NamedFormat:
    """A format; equal by name."""

    cel_type: ClassVar[Type] = kinds.FORMAT
    name: str
    faults: Faults = field(compare=False, repr=False)


def _long(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} bytes"] if len(text.encode("utf-8", "surrogatepass")) > most else []


def _label(text: str) -> list[str]:
    faults = _long(text, 63)
    if not re.fullmatch(_LABEL, text):
        faults.append("must not contain dots" if re.fullmatch(_SUBDOMAIN, text) else _LABEL_TEXT)
    return faults


def _label_1035(text: str) -> list[str]:
    return _long(text, 63) + ([] if re.fullmatch(_LABEL_1035, text) else [_LABEL_1035_TEXT])


def _subdomain(text: str) -> list[str]:
    return _long(text, 253) + ([] if re.fullmatch(_SUBDOMAIN, text) else [_SUBDOMAIN_TEXT])


def _prefix(faults: Faults) -> Faults:
    """As upstream `maskTrailingDash`: a dash at the end may be followed by generated characters."""
    return lambda text: faults(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)


def _date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        parse_timestamp(f"{text.replace('0000', '0004', 1) if text.startswith('0000') else text}T00:00:00Z")
    except CelError:
        return False
    return True


def _datetime(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not _date(parts[0]):
        return False
    match = _TIME.fullmatch(parts[1])
    return match is not None and int(match[1]) < 24 and int(match[2]) < 60 and int(match[3]) < 60


def _test(test: Callable[[str], object], fault: str) -> Faults:
    return lambda text: [] if test(text) else [fault]


def _uri(text: str) -> list[str]:
    fault = request_fault(text)
    return [fault] if fault else []


FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", _label),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", _subdomain),
    "dns1035Label": NamedFormat("DNS1035Label", _label_1035),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", _prefix(_label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", _prefix(_subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", _prefix(_label_1035)),
    "qualifiedName": NamedFormat("QualifiedName", key_faults),
    "labelValue": NamedFormat("LabelValue", value_faults),
    "uri": NamedFormat("URI", _uri),
    "uuid": NamedFormat("uuid", _test(_UUID.fullmatch, "does not match the UUID format")),
    "byte": NamedFormat("byte", _test(_BASE64.fullmatch, "invalid base64")),
    "date": NamedFormat("date", _test(_date, "invalid date")),
    "datetime": NamedFormat("datetime", _test(_datetime, "invalid datetime")),
}


def _named(name: str) -> Optional:
    found = FORMATS.get(name)
    return NONE if found is None else Optional(present=True, value=found)


def _validate(form: NamedFormat, text: str) -> Optional:
    faults = form.faults(text)
    return Optional(present=True, value=faults) if faults else NONE


def _constant(form: NamedFormat) -> Callable[[], NamedFormat]:
    return lambda: form


FORMAT = (
    declare("format.named(string) -> optional_type(kubernetes.NamedFormat)", _named, "the format of that name"),
    declare(
        "kubernetes.NamedFormat.validate(string) -> optional_type(list(string))",
        _validate,
        "what is wrong with the text; none if nothing is",
    ),
    *(declare(f"format.{name}() -> kubernetes.NamedFormat", _constant(form), "the format") for name, form in FORMATS.items()),
)
