"""Errors of reads, as sentences that say what to do."""

from collections.abc import Callable
from enum import Enum, auto
from typing import TypeAlias

from headrace.client.errors import ClientError, NoSuchTopic


class ReadError(ClientError):
    """A read cannot be done; the message says why."""


class Loss(Enum):
    """Why records that were to be read do not exist any more."""

    DELETED = auto()
    """By retention, by DeleteRecords, or with their topic."""
    RECREATED = auto()
    """The topic was deleted, and another one has its name."""


class DataLoss(ReadError):
    """Records that were to be read do not exist any more."""


OnLoss: TypeAlias = Callable[[str, Loss], None]
"""Called with a sentence about lost records: it raises an error, or returns to continue without them."""


def fail_on_loss(what: str, _loss: Loss) -> None:
    raise DataLoss(what)


def no_such_topic(topic: str) -> NoSuchTopic:
    """Return the error about a topic that does not exist, with advice."""
    return NoSuchTopic(
        topic,
        said=f"there is no topic {topic!r}: create it (headrace topic create {topic}), or correct the name",
    )
