"""The proxy that the environment names for a server (upstream: Go's `httpproxy`, which client-go asks)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

PORTS = {"http": 80, "https": 443}


def proxy_of(url: str, environment: Mapping[str, str]) -> str | None:
    """The URL of the proxy for a URL; None where it is reached without one, as this host always is."""
    parts = urlsplit(url)
    host = (parts.hostname or "").rstrip(".")
    name = f"{parts.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name) or ""
    if not proxy or not host or _exempt(host, parts.port or PORTS.get(parts.scheme), environment):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _exempt(host: str, port: int | None, environment: Mapping[str, str]) -> bool:
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    listed = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    entries = (entry.strip().lower() for entry in listed.split(","))
    return any(_names(entry, host, address, port) for entry in entries if entry)


def _names(entry: str, host: str, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None, port: int | None) -> bool:
    """Is the host meant: by `*`, as one of a network, by its address or name, or by a domain that it is in?"""
    if entry == "*":
        return True
    if "/" in entry:
        try:
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    name, _, only = entry.rpartition(":")
    if name and only.isdecimal() and (":" not in name or name.endswith("]")):
        if int(only) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    if address is not None:
        return _address(entry) == address
    domain = entry.removeprefix("*")
    return host.endswith(domain) if domain.startswith(".") else host == domain or host.endswith(f".{domain}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
