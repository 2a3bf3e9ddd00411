"""Paths of znodes: what is a legal one, and where its parent is."""

import re
from typing import Final

from headrace.coordination.embedded.errors import ErrorCode, Refused

ROOT: Final = "/"
SPECIAL: Final = frozenset({"/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"})
"""What ZooKeeper itself puts there, and no client can delete."""

# Control characters, surrogates and private use, specials, and what lies outside Java's 16-bit characters'
# legal part: the list is that of ZooKeeper's PathUtils.
_ILLEGAL: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
_RELATIVE_OR_EMPTY: Final = re.compile(r"/\.{0,2}(/|$)")


def parent_of(path: str) -> str:
    """`/a` of `/a/b`, and `/` of `/a`."""
    return path[: path.rindex("/")] or ROOT


def child_path(parent: str, name: str) -> str:
    return f"/{name}" if parent == ROOT else f"{parent}/{name}"


def check_path(path: str) -> None:
    """Refuse what is no absolute, normal path: `a`, `/a/`, `/a//b`, `/a/../b`, control characters."""
    if not path.startswith("/"):
        raise Refused(ErrorCode.BAD_ARGUMENTS, f"{path!r} does not start with /")
    if path != ROOT and (_RELATIVE_OR_EMPTY.search(path) or _ILLEGAL.search(path)):
        raise Refused(ErrorCode.BAD_ARGUMENTS, f"{path!r} is not a legal path")


def check_parent(path: str) -> str:
    """The parent of a path whose own last part may still grow a number."""
    if "/" not in path or "\x00" in path:
        raise Refused(ErrorCode.BAD_ARGUMENTS, f"{path!r} has no parent")
    return parent_of(path)
