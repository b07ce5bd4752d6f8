"""IP addresses and networks.

Kubernetes refuses IPv4 addresses written as IPv6 (`::ffff:1.2.3.4`), cel-spec reads them as IPv4; both refuse zones.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar

from stowplan.cel import kinds
from stowplan.cel.errors import CelError
from stowplan.cel.kinds import Type
from stowplan.cel.overloads import Overload, declare

_BITS = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address."""

    cel_type: ClassVar[Type] = kinds.IP
    address: IPv4Address | IPv6Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Network:
    """An IP address with a prefix length; host bits may be set."""

    cel_type: ClassVar[Type] = kinds.CIDR
    address: IPv4Address | IPv6Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    @property
    def width(self) -> int:
        """Bits of an address of the family."""
        return self.address.max_prefixlen

    def prefix_of(self, address: IPv4Address | IPv6Address) -> int:
        """The first `bits` bits of an address."""
        return int(address) >> (self.width - self.bits)


def _read(text: str) -> IPv4Address | IPv6Address:
    """The address without judgement on zones and mapping; CelError if it is none."""
    try:
        if ":" in text:
            return IPv6Address(text)
        return IPv4Address(text)
    except ValueError:
        raise CelError(f'IP Address "{text[:60]}" parse error during conversion from string') from None


def _address(mapped: bool) -> Callable[[str], Address]:
    def kernel(text: str) -> Address:
        address = _read(text)
        if isinstance(address, IPv6Address):
            if address.scope_id is not None or "%" in text:
                raise CelError(f'IP Address "{text[:60]}" with zone value is not allowed')
            inner = address.ipv4_mapped
            if inner is not None and not mapped:
                raise CelError(f'IPv4-mapped IPv6 address "{text[:60]}" is not allowed')
            if inner is not None:
                return Address(inner)
        return Address(address)

    return kernel


parse_ip = _address(mapped=False)


def parse_cidr(text: str) -> Network:
    """The network; CelError if it is none."""
    head, slash, bits = text.rpartition("/")
    if not slash or not _BITS.fullmatch(bits):
        raise CelError(f'network address parse error during conversion from string: "{text[:60]}"')
    address = _read(head)
    if isinstance(address, IPv6Address):
        if address.scope_id is not None or "%" in head:
            raise CelError(f'CIDR "{text[:60]}" with zone value is not allowed')
        if address.ipv4_mapped is not None:
            raise CelError(f'IPv4-mapped IPv6 address "{text[:60]}" is not allowed')
    if int(bits) > address.max_prefixlen:
        raise CelError(f'network address parse error during conversion from string: "{text[:60]}": prefix length out of range')
    return Network(address, int(bits))


def _contains(network: Network, address: Address) -> bool:
    same = network.address.version == address.address.version
    return same and network.prefix_of(network.address) == network.prefix_of(address.address)


def _contains_network(network: Network, other: Network) -> bool:
    return network.bits <= other.bits and _contains(network, Address(other.address))


def _masked(network: Network) -> Network:
    cleared = network.prefix_of(network.address) << (network.width - network.bits)
    return Network(type(network.address)(cleared), network.bits)


def _link_local(address: IPv4Address | IPv6Address) -> bool:
    return int(address) >> 16 == 0xA9FE if address.version == 4 else int(address) >> 118 == 0xFE80 >> 6


def _link_local_multicast(ip: Address) -> bool:
    number = int(ip.address)
    return number >> 8 == 0xE00000 if ip.address.version == 4 else (number >> 112) & 0xFF0F == 0xFF02


def _loopback(address: IPv4Address | IPv6Address) -> bool:
    return int(address) >> 24 == 127 if address.version == 4 else int(address) == 1


def _global_unicast(ip: Address) -> bool:
    address = ip.address
    number = int(address)
    if number == 0 or (address.version == 4 and number == 0xFFFFFFFF):
        return False
    return not (_loopback(address) or address.is_multicast or _link_local(address))


def _try(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def kernel(text: str) -> bool:
        try:
            parse(text)
        except CelError:
            return False
        return True

    return kernel


def _ips(mapped: bool) -> tuple[Overload, ...]:
    parse = _address(mapped)
    return (
        declare("ip(string) -> net.IP", parse, "the address"),
        declare("isIP(string) -> bool", _try(parse), "whether the text is an address"),
        declare(
            "ip.isCanonical(string) -> bool", lambda text: str(parse(text)) == text, "whether the address is in its usual form"
        ),
        declare("string(net.IP) -> string", str, "the usual form"),
        declare("net.IP.family() -> int", lambda ip: ip.address.version, "4 or 6"),
        declare("net.IP.isUnspecified() -> bool", lambda ip: int(ip.address) == 0, "whether it is all zeros"),
        declare("net.IP.isLoopback() -> bool", lambda ip: _loopback(ip.address), "whether it is this host"),
        declare("net.IP.isLinkLocalMulticast() -> bool", _link_local_multicast, "whether it is link-local multicast"),
        declare("net.IP.isLinkLocalUnicast() -> bool", lambda ip: _link_local(ip.address), "whether it is link-local"),
        declare("net.IP.isGlobalUnicast() -> bool", _global_unicast, "whether it is global, private ones included"),
        declare("net.CIDR.containsIP(net.IP) -> bool", _contains, "whether the address is in the network"),
        declare(
            "net.CIDR.containsIP(string) -> bool", lambda net, text: _contains(net, parse(text)), "whether it is in the network"
        ),
    )


_CIDRS = (
    declare("cidr(string) -> net.CIDR", parse_cidr, "the network"),
    declare("isCIDR(string) -> bool", _try(parse_cidr), "whether the text is a network"),
    declare("string(net.CIDR) -> string", str, "address/length"),
    declare("net.CIDR.containsCIDR(net.CIDR) -> bool", _contains_network, "whether it covers the other"),
    declare(
        "net.CIDR.containsCIDR(string) -> bool", lambda n, t: _contains_network(n, parse_cidr(t)), "whether it covers the other"
    ),
    declare("net.CIDR.ip() -> net.IP", lambda net: Address(net.address), "the address in it"),
    declare("net.CIDR.masked() -> net.CIDR", _masked, "with the host bits cleared"),
    declare("net.CIDR.prefixLength() -> int", lambda net: net.bits, "the number of network bits"),
)
NETWORK = (*_ips(mapped=True), *_CIDRS)
KUBERNETES_NETWORK = (*_ips(mapped=False), *_CIDRS)
