"""Paths of znodes: validation and parents."""

import re
from typing import Final

from headrace.coordination.embedded.errors import ErrorCode, KeeperError

ROOT: Final = "/"
SPECIAL: Final = frozenset({"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"})
"""Znodes that ZooKeeper itself creates, and that no client can delete."""

# Control characters, surrogates and private use, specials, and characters outside Java's 16 bits: the list is
# that of ZooKeeper's PathUtils.
_ILLEGAL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
_RELATIVE_OR_EMPTY: Final = re.compile(r"/\.{0,2}(/|$)")


def parent_of(path: str) -> str:
    """Return the parent: `/a` of `/a/b`, and `/` of `/a`."""
    return path[: path.rindex("/")] or ROOT


def check_path(path: str) -> None:
    """Raise unless `path` is absolute and normal, unlike `a`, `/a/`, `/a//b`, `/a/../b`."""
    if not path.startswith("/"):
        raise KeeperError(ErrorCode.BAD_ARGUMENTS, f"{path!r} does not start with /")
    if path != ROOT and (_RELATIVE_OR_EMPTY.search(path) or _ILLEGAL.search(path)):
        raise KeeperError(ErrorCode.BAD_ARGUMENTS, f"{path!r} is not a legal path")


def check_parent(path: str) -> str:
    """Return the parent of a path to which a sequence number may still be appended."""
    if "/" not in path or "\x00" in path:
        raise KeeperError(ErrorCode.BAD_ARGUMENTS, f"{path!r} has no parent")
    return parent_of(path)
