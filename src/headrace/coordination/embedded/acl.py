"""Access control lists of znodes, identities, and their authentication.

Schemes: `world` (anyone), `ip` (an address or network), `digest` (user and password), `sasl` (a user who has
authenticated with SASL), `x509` (the subject of a certificate), and `auth`, which stands for all identities
that the requester has proven. As in ZooKeeper, an unauthenticated connection has its address.
"""

import base64
import hashlib
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from typing import Final, NamedTuple

from headrace.coordination.embedded.errors import ErrorCode, KeeperError

READ: Final = 1
WRITE: Final = 2
CREATE: Final = 4
DELETE: Final = 8
ADMIN: Final = 16
ALL: Final = 31


class Identity(NamedTuple):
    scheme: str
    id: str


class Acl(NamedTuple):
    perms: int
    scheme: str
    id: str


AclList = tuple[Acl, ...]

ANYONE: Final = Identity("world", "anyone")
PROVEN: Final = frozenset({"digest", "sasl", "x509"})
"""The schemes of identities that `auth` stands for."""
OPEN: Final[AclList] = (Acl(ALL, *ANYONE),)
READ_ONLY: Final[AclList] = (Acl(READ, *ANYONE),)


def allows(acl: AclList, permission: int, identities: Sequence[Identity]) -> bool:
    """Return whether one of `identities` has a bit of `permission`; an empty list allows everybody."""
    if acl is OPEN or not acl:  # almost every node: one comparison
        return True
    for entry in acl:
        if entry.perms & permission and (entry[1:] == ANYONE or _matches(entry, identities)):
            return True
    return False


def require(acl: AclList, permission: int, identities: Sequence[Identity], path: str) -> None:
    if not allows(acl, permission, identities):
        raise KeeperError(ErrorCode.NO_AUTH, path)


def expand(requested: Sequence[Acl], identities: Sequence[Identity], path: str) -> AclList:
    """Return the list to store: valid, without duplicates, `auth` replaced by the requester's identities."""
    expanded: dict[Acl, None] = {}
    for entry in requested:
        if entry.scheme == "auth":
            proved = [Acl(entry.perms, *identity) for identity in identities if identity.scheme in PROVEN]
            if not proved:
                raise KeeperError(ErrorCode.INVALID_ACL, f"{path}: auth without a proved identity")
            expanded.update(dict.fromkeys(proved))
        elif _is_valid(entry):
            expanded[entry] = None
        else:
            raise KeeperError(ErrorCode.INVALID_ACL, f"{path}: {entry.scheme}:{entry.id}")
    if not expanded:
        raise KeeperError(ErrorCode.INVALID_ACL, f"{path}: an empty list")
    listed = tuple(expanded)
    return OPEN if listed == OPEN else listed  # the constant, so that `allows` recognises it


def masked(acl: AclList) -> AclList:
    """Return `acl` for clients without the right to change it: without the digests of passwords."""
    return tuple(
        entry._replace(id=entry.id.split(":")[0] + ":x") if entry.scheme == "digest" else entry
        for entry in acl
    )


def digest_identity(credentials: bytes) -> Identity:
    """Return the identity of `user:password`: ZooKeeper stores its SHA-1, which its clients also compute."""
    user = credentials.split(b":", 1)[0].decode(errors="replace")
    digest = hashlib.sha1(credentials, usedforsecurity=False).digest()
    return Identity("digest", f"{user}:{base64.b64encode(digest).decode()}")


def authenticate(scheme: str, credentials: bytes, address: str) -> Identity | None:
    """Return the identity of an auth packet, or None for an unsupported scheme."""
    if scheme == "digest":
        return digest_identity(credentials)
    return Identity("ip", address) if scheme == "ip" else None


def _matches(entry: Acl, identities: Sequence[Identity]) -> bool:
    if entry.scheme == "ip":
        return any(scheme == "ip" and _within(address, entry.id) for scheme, address in identities)
    return (entry.scheme, entry.id) in identities


def _within(address: str, network: str) -> bool:
    try:
        return ip_address(address) in ip_network(network, strict=False)
    except (ValueError, TypeError):  # not an address, or IPv4 and IPv6 mixed
        return False


def _is_valid(entry: Acl) -> bool:
    if entry.scheme == "world":
        return entry.id == "anyone"
    if entry.scheme == "digest":
        return len([part for part in entry.id.split(":") if part]) == 2
    if entry.scheme in {"sasl", "x509"}:
        return bool(entry.id)
    if entry.scheme == "ip":
        try:
            ip_network(entry.id, strict=False)
        except ValueError:
            return False
        return True
    return False
