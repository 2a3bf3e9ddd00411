"""Errors of coordination; each message says what to do."""

from pathlib import Path


class CoordinationError(Exception):
    """Coordination cannot start or continue; an operator has to act."""


class CorruptJournal(CoordinationError):
    """Acknowledged data has changed."""

    def __init__(self, path: Path, position: int, why: object) -> None:
        super().__init__(f"{path} is corrupt at byte {position}: {why}")
        self.path, self.position = path, position


class JournalInUse(CoordinationError):
    """Another coordinator runs on the same directory."""


class ZooKeeperUnavailable(CoordinationError):
    """Apache ZooKeeper cannot be run here; the message says what to install."""
