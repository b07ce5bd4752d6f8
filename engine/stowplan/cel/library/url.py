"""URLs as Go's net/url reads them (`ParseRequestURI` decides what is one, then `Parse` with a fragment)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import ClassVar

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type
from stowplan.cel.overloads import declare

_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER = re.compile(r"[a-zA-Z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_HEX = frozenset(b"0123456789abcdefABCDEF")
_FREE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_PATH = _FREE | frozenset(b"$&+,/:;=@")
_HOST = _FREE | frozenset(b"!$&'()*+,;=:[]<>\"")
_VALID_PATH = _PATH | frozenset(b"!'()*[]%")


@dataclass(frozen=True, slots=True)
class Url:
    """A parsed URL; equal when all parts are."""

    cel_type: ClassVar[Type] = kinds.URL
    scheme: str = ""
    opaque: str = ""
    user: str = ""
    host: str = ""
    path: str = ""  # as escaped
    query: str = ""
    fragment: str = ""
    rooted: bool = False  # an authority was written, even an empty one

    def __str__(self) -> str:
        head = f"{self.scheme}:" if self.scheme else ""
        tail = f"?{self.query}" * bool(self.query) + f"#{self.fragment}" * bool(self.fragment)
        if self.opaque:
            return head + self.opaque + tail
        if self.rooted and (self.scheme or self.host or self.user):
            head += "//" + (f"{self.user}@" if self.user else "") + escape(self.host, _HOST)
        return head + self.path + tail


def escape(text: str, free: frozenset[int]) -> str:
    """Every byte that is not free as %XX."""
    return "".join(chr(byte) if byte in free else f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def unescape(text: str, mode: str) -> str:
    """Without %XX; CelError for a bad one. `mode` is path, query, host or zone."""
    data = text.encode("utf-8", "surrogatepass")
    out, index = bytearray(), 0
    while index < len(data):
        byte = data[index]
        if byte == ord("%"):
            triple = data[index : index + 3]
            if len(triple) < 3 or not _HEX.issuperset(triple[1:]):
                raise CelError(f'invalid URL escape "{triple.decode(errors="replace")}"')
            value = int(triple[1:], 16)
            if triple != b"%25" and ((mode == "host" and value < 0x80) or (mode == "zone" and value != 32 and value not in _HOST)):
                raise CelError(f'invalid URL escape "{triple.decode()}"')
            out.append(value)
            index += 3
            continue
        if mode in ("host", "zone") and byte < 0x80 and byte not in _HOST:
            raise CelError(f'invalid character "{chr(byte)}" in host name')
        out.append(32 if mode == "query" and byte == ord("+") else byte)
        index += 1
    return out.decode("utf-8", "replace")


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise CelError(f'invalid port "{text}" after host')


def _host(text: str) -> str:
    if text.startswith("["):
        close = text.rfind("]")
        if close < 0:
            raise CelError("missing ']' in host")
        _check_port(text[close + 1 :])
        zone = text[:close].find("%25")
        inside = text[1 : zone if zone >= 0 else close]
        try:
            IPv6Address(unescape(inside, "host"))
        except ValueError:
            raise CelError("invalid host") from None
        if zone >= 0:
            return unescape(text[:zone], "host") + unescape(text[zone:close], "zone") + unescape(text[close:], "host")
    elif ":" in text:
        _check_port(text[text.rfind(":") :])
        if text.count(":") > 1:
            raise CelError(f'invalid port "{text[text.find(":") :]}" after host')
    return unescape(text, "host")


def _authority(text: str) -> tuple[str, str]:
    user, at, host = text.rpartition("@")
    if at and not _USER.fullmatch(user):
        raise CelError("net/url: invalid userinfo")
    unescape(user, "user")
    return user, _host(host)


def _split(text: str, *, request: bool) -> Url:
    """Go's parse: the parts of a URL without fragment."""
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise CelError("invalid control character in URL")
    if not text and request:
        raise CelError("empty url")
    if text == "*":
        return Url(path="*")
    if text.startswith(":"):
        raise CelError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    rest, _, query = text[match.end() if match else 0 :].partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme, opaque=rest, query=query)
        if request:
            raise CelError("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise CelError("first path segment in URL cannot contain colon")
    user = host = ""
    rooted = bool(rest.startswith("//") and (scheme or (not request and not rest.startswith("///"))))
    if rooted:
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        user, host = _authority(authority)
    path = unescape(rest, "path")
    valid = _VALID_PATH.issuperset(rest.encode("utf-8", "surrogatepass"))
    return Url(scheme, "", user, host, rest if valid else escape(path, _PATH), query, rooted=rooted)


def parse_url(text: str) -> Url:
    """The URL; CelError for what Kubernetes takes for none."""
    try:
        _split(text, request=True)
        head, _, fragment = text.partition("#")
        unescape(fragment, "fragment")
        url = _split(head, request=False)
    except CelError as error:
        raise CelError(f'URL parse error during conversion from string: parse "{text[:200]}": {error.message}') from None
    return Url(url.scheme, url.opaque, url.user, url.host, url.path, url.query, fragment, url.rooted)


def request_fault(text: str) -> str:
    """Why the text is no request URI, empty if it is one."""
    try:
        _split(text, request=True)
    except CelError as error:
        return f'parse "{text}": {error.message}'
    return ""


def _is_url(text: str) -> bool:
    try:
        parse_url(text)
    except CelError:
        return False
    return True


def _hostname(url: Url) -> str:
    host = url.host
    if host.startswith("["):
        return host[1 : host.rfind("]")]
    return host.partition(":")[0]


def _port(url: Url) -> str:
    rest = url.host[url.host.rfind("]") + 1 :]
    return rest.partition(":")[2]


def _query(url: Url) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair:
            continue
        key, _, value = pair.partition("=")
        try:
            found.setdefault(unescape(key, "query"), []).append(unescape(value, "query"))
        except CelError:
            continue
    return {key: values for key, values in found.items() if values}


_U = "kubernetes.URL"
URLS = (
    declare(f"url(string) -> {_U}", parse_url, "the absolute URI or path"),
    declare("isURL(string) -> bool", _is_url, "whether url() accepts the text"),
    declare(f"{_U}.getScheme() -> string", lambda url: url.scheme, "such as https"),
    declare(f"{_U}.getHost() -> string", lambda url: url.host, "host and port"),
    declare(f"{_U}.getHostname() -> string", _hostname, "host without port and brackets"),
    declare(f"{_U}.getPort() -> string", _port, "the port, empty if none is given"),
    declare(f"{_U}.getEscapedPath() -> string", lambda url: url.path, "the path"),
    declare(f"{_U}.getQuery() -> map(string, list(string))", _query, "the values of each key"),
)
