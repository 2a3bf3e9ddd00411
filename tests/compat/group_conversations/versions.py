"""Requests at a version that is not the one of the conversation's level."""

from compat.group_conversations.consumer import Consumer
from compat.group_conversations.offsets import Positions


def commit_at(version: int, consumer: Consumer, positions: Positions) -> None:
    """A commit at an older version."""
    level, consumer.talk.level = consumer.talk.level, version
    try:
        consumer.commit(positions)
    finally:
        consumer.talk.level = level
