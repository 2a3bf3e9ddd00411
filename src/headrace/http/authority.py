"""The Host header: `uri-host [":" port]` of RFC 3986, and nothing that only resembles it."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final

_HOST: Final = re.compile(
    rb"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<name>(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+))(?::[0-9]*)?"
)


@dataclass(frozen=True, slots=True)
class Authority:
    """The host of a Host header, in lower case and without brackets and port."""

    host: str
    is_address: bool


def parse_authority(given: bytes) -> Authority | None:
    """The host that `given` names, or None if it does not follow the grammar.

    `a:80@b` (user information), `[::1].b`, `[::1%25lo]` (a zone) and an empty host are refused.
    """
    found = _HOST.fullmatch(given)
    if found is None:
        return None
    if found["ipv6"] is not None:
        literal = found["ipv6"].decode("ascii")
        return Authority(literal.lower(), is_address=True) if _is(IPv6Address, literal) else None
    name = found["name"].decode("ascii").lower()
    return Authority(name, is_address=_is(IPv4Address, name))


def _is(kind: type[IPv4Address] | type[IPv6Address], text: str) -> bool:
    try:
        kind(text)
    except AddressValueError:
        return False
    return True
