"""Kubernetes' rules for label keys and values, with the exact texts of apimachinery's validation.

Upstream: `IsLabelKey`, `IsLabelValue` and `IsDNS1123Subdomain` of k8s.io/apimachinery/pkg/api/validate/content. The
texts matter: they surface in FailedScheduling events when a preferred node affinity term cannot be parsed.
"""

from __future__ import annotations

import re

_NAME = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME})?"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"

_NAME_RE = re.compile(_NAME)
_VALUE_RE = re.compile(_VALUE)
_SUBDOMAIN_RE = re.compile(_SUBDOMAIN)

_NAME_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    f"(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_NAME}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)


def _too_long(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} bytes"] if len(text.encode()) > limit else []


def key_faults(key: str) -> list[str]:
    """What is wrong with a label key (also called a qualified name); empty if nothing is."""
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [f"a valid label key {_NAME_TEXT} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    faults: list[str] = []
    if slash and not prefix:
        faults.append("prefix part must be non-empty")
    elif slash:
        faults += [f"prefix part {fault}" for fault in subdomain_faults(prefix)]
    if not name:
        faults.append("name part must be non-empty")
    faults += [f"name part {fault}" for fault in _too_long(name, 63)]
    if not _NAME_RE.fullmatch(name):
        faults.append(f"name part {_NAME_TEXT}")
    return faults


def value_faults(value: str) -> list[str]:
    """What is wrong with a label value; empty if nothing is."""
    faults = _too_long(value, 63)
    if not _VALUE_RE.fullmatch(value):
        faults.append(_VALUE_TEXT)
    return faults


def subdomain_faults(text: str) -> list[str]:
    """What is wrong with the name of an object; empty if nothing is."""
    faults = _too_long(text, 253)
    if not _SUBDOMAIN_RE.fullmatch(text):
        faults.append(_SUBDOMAIN_TEXT)
    return faults


def is_qualified_name(name: str) -> bool:
    """Upstream `IsQualifiedName`."""
    return not key_faults(name)
