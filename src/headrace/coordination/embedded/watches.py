"""Watches by path: each is triggered once.

A watcher is a connection: watches end with it, and clients set them again on the next one.
"""

from enum import Flag, auto
from typing import Final, Generic, TypeVar

from headrace.coordination.embedded.errors import ErrorCode, KeeperError
from headrace.coordination.embedded.tree import Event, EventType

MAX_WATCHES: Final = 100_000
MAX_PATH_CHARACTERS: Final = 16 << 20
"""Limits for each connection: the watched paths need not exist, and each may be as long as a request.

Beyond them, a watch is refused with QUOTA_EXCEEDED, and so is the read that sets it.
"""

W = TypeVar("W")


class Mode(Flag):
    DATA = auto()  # created, deleted, data changed
    CHILD = auto()  # deleted, children changed


_TRIGGERED: Final = {
    EventType.CREATED: Mode.DATA,
    EventType.DELETED: Mode.DATA | Mode.CHILD,
    EventType.DATA_CHANGED: Mode.DATA,
    EventType.CHILDREN_CHANGED: Mode.CHILD,
}


class Watches(Generic[W]):
    def __init__(self, limit: int = MAX_WATCHES) -> None:
        self._limit = limit
        self._by_path: dict[str, dict[W, Mode]] = {}
        self._by_watcher: dict[W, set[str]] = {}
        self._characters: dict[W, int] = {}

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
        watchers[watcher] = watchers.get(watcher, Mode(0)) | mode

    def forget(self, watcher: W) -> None:
        """Remove all watches of a closed connection."""
        for path in list(self._by_watcher.get(watcher, ())):
            self._set(watcher, path, Mode(0))

    def trigger(self, event: Event) -> list[W]:
        """Return the watchers of `event`, and remove the watches that it triggers."""
        triggered = _TRIGGERED[event.type]
        watchers = {
            watcher: mode for watcher, mode in self._by_path.get(event.path, {}).items() if mode & triggered
        }
        for watcher, mode in watchers.items():
            self._set(watcher, event.path, mode & ~triggered)
        return list(watchers)

    def _set(self, watcher: W, path: str, mode: Mode) -> None:
        watchers = self._by_path[path]
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
