"""Watches by path: one-shot data and child watches, and persistent ones.

A watcher is a connection: watches end with it, and clients set them again on the next one.
"""

from collections.abc import Iterator
from enum import Flag, auto
from typing import Final, Generic, TypeVar

from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.coordination.embedded.paths import ROOT, parent_of
from headrace.coordination.embedded.tree import Event, EventType

MAX_WATCHES: Final = 100_000
MAX_PATH_CHARACTERS: Final = 16 << 20
"""Limits for each connection: the watched paths need not exist, and each may be as long as a request.

Beyond them, a watch is refused with QUOTA_EXCEEDED, and so is the read that sets it.
"""

W = TypeVar("W")


class Mode(Flag):
    DATA = auto()  # once: created, deleted, data changed
    CHILD = auto()  # once: deleted, children changed
    PERSISTENT = auto()  # both of these, until removed
    RECURSIVE = auto()  # created, deleted, data changed, here and everywhere below, until removed


ONCE: Final = Mode.DATA | Mode.CHILD
_HEARD_HERE: Final = {
    EventType.CREATED: Mode.DATA | Mode.PERSISTENT | Mode.RECURSIVE,
    EventType.DELETED: Mode.DATA | Mode.CHILD | Mode.PERSISTENT | Mode.RECURSIVE,
    EventType.DATA_CHANGED: Mode.DATA | Mode.PERSISTENT | Mode.RECURSIVE,
    EventType.CHILDREN_CHANGED: Mode.CHILD | Mode.PERSISTENT,
}


class Watches(Generic[W]):
    def __init__(self, limit: int = MAX_WATCHES) -> None:
        self._limit = limit
        self._by_path: dict[str, dict[W, Mode]] = {}
        self._by_watcher: dict[W, set[str]] = {}
        self._characters: dict[W, int] = {}
        self._recursive = 0  # without any, events need not look at ancestors

    def __len__(self) -> int:
        return sum(map(len, self._by_path.values()))

    def count(self, watcher: W) -> int:
        return len(self._by_watcher.get(watcher, ()))

    def add(self, watcher: W, path: str, mode: Mode) -> None:
        """Add a watch; adding it twice is the same as once."""
        paths = self._by_watcher.setdefault(watcher, set())
        if path not in paths:
            characters = self._characters.get(watcher, 0) + len(path)
            if len(paths) >= self._limit or characters > MAX_PATH_CHARACTERS:
                raise KeeperError(ErrorCode.QUOTA_EXCEEDED, f"{len(paths)} watches on one connection")
            self._characters[watcher] = characters
            paths.add(path)
        watchers = self._by_path.setdefault(path, {})
        before = watchers.get(watcher, Mode(0))
        watchers[watcher] = before | mode
        if mode & Mode.RECURSIVE and not before & Mode.RECURSIVE:
            self._recursive += 1

    def remove(self, watcher: W, path: str, mode: Mode) -> bool:
        """Remove a watch, and return whether there was one."""
        before = self._by_path.get(path, {}).get(watcher, Mode(0))
        if not before & mode:
            return False
        self._set(watcher, path, before & ~mode)
        return True

    def forget(self, watcher: W) -> None:
        """Remove all watches of a closed connection."""
        for path in list(self._by_watcher.get(watcher, ())):
            self._set(watcher, path, Mode(0))

    def trigger(self, event: Event) -> list[W]:
        """Return the watchers of `event`, and remove the one-shot watches that it triggers."""
        hears = _HEARD_HERE[event.type]
        heard: dict[W, None] = {}
        for watcher, mode in list(self._by_path.get(event.path, {}).items()):
            if mode & hears:
                heard[watcher] = None
                if mode & hears & ONCE:
                    self._set(watcher, event.path, mode & ~(hears & ONCE))
        if self._recursive and event.type != EventType.CHILDREN_CHANGED:
            for ancestor in _ancestors(event.path):
                for watcher, mode in self._by_path.get(ancestor, {}).items():
                    if mode & Mode.RECURSIVE:
                        heard[watcher] = None
        return list(heard)

    def _set(self, watcher: W, path: str, mode: Mode) -> None:
        watchers = self._by_path[path]
        if watchers[watcher] & Mode.RECURSIVE and not mode & Mode.RECURSIVE:
            self._recursive -= 1
        if mode:
            watchers[watcher] = mode
            return
        del watchers[watcher]
        if not watchers:
            del self._by_path[path]
        paths = self._by_watcher[watcher]
        paths.remove(path)
        self._characters[watcher] -= len(path)
        if not paths:
            del self._by_watcher[watcher], self._characters[watcher]


def _ancestors(path: str) -> Iterator[str]:
    while path != ROOT:
        path = parent_of(path)
        yield path
