"""Access control lists of znodes, identities, and their authentication.

Schemes: `world` (anyone), `digest` (user and password), `sasl` (a user who has authenticated with SASL),
`x509` (the subject of a certificate), and `auth`, which stands for all identities that the requester has
proven. ZooKeeper's scheme `ip` is not supported.
"""

import base64
import hashlib
from collections.abc import Callable, Sequence
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
OPEN: Final[AclList] = (Acl(ALL, *ANYONE),)
READ_ONLY: Final[AclList] = (Acl(READ, *ANYONE),)
_IS_VALID: Final[dict[str, Callable[[str], bool]]] = {
    "world": lambda id_: id_ == "anyone",
    "digest": lambda id_: len([part for part in id_.split(":") if part]) == 2,
    "sasl": bool,
    "x509": bool,
}


def allows(acl: AclList, permission: int, identities: Sequence[Identity]) -> bool:
    """Return whether one of `identities` has a bit of `permission`; an empty list allows everybody."""
    if acl is OPEN or not acl:  # almost every node: one comparison
        return True
    return any(entry.perms & permission and (entry[1:] == ANYONE or entry[1:] in identities) for entry in acl)


def require(acl: AclList, permission: int, identities: Sequence[Identity], path: str) -> None:
    if not allows(acl, permission, identities):
        raise KeeperError(ErrorCode.NO_AUTH, path)


def expand(requested: Sequence[Acl], identities: Sequence[Identity], path: str) -> AclList:
    """Return the list to store: valid, without duplicates, `auth` replaced by the requester's identities."""
    expanded: dict[Acl, None] = {}
    for entry in requested:
        if entry.scheme == "auth":
            if not identities:
                raise KeeperError(ErrorCode.INVALID_ACL, f"{path}: auth without a proved identity")
            expanded.update(dict.fromkeys(Acl(entry.perms, *identity) for identity in identities))
        elif entry.scheme in _IS_VALID and _IS_VALID[entry.scheme](entry.id):
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
