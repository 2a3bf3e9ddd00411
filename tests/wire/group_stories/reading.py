"""What every client's consumer in a group can do, whoever wrote it: read, commit, tell what it owns."""

from collections.abc import Collection
from typing import NamedTuple, Protocol


class Place(NamedTuple):
    """A partition."""

    topic: str
    partition: int


class Read(NamedTuple):
    """A record that a member got."""

    place: Place
    offset: int
    value: bytes


class CommitFailed(Exception):
    """The client could not commit, and says so; what was read may be read again by somebody."""


class Watcher(Protocol):
    """Whom a reader tells, from its callbacks, what it owns."""

    def assigned(self, places: Collection[Place]) -> None:
        """These are the reader's from now on, besides those it has."""

    def revoked(self, places: Collection[Place]) -> None:
        """These are no longer the reader's, and nobody else's yet."""


class Reader(Protocol):
    """A consumer that has subscribed. Used by one thread."""

    def poll(self, timeout_s: float) -> list[Read]:
        """Some records, perhaps none; callbacks run in here."""

    def commit(self) -> None:
        """Commit what was read, and return once the broker has it; raise CommitFailed if it refuses."""

    def close(self) -> None:
        """Leave the group. The callback for what is given up runs before."""
