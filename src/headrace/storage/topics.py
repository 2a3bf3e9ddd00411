"""Valid topic names, and the names of partition directories."""

import re

from headrace.protocol.ids import TopicPartition
from headrace.storage.config import MAX_INT32
from headrace.storage.errors import InvalidTopic

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""The topics of coordinators: clients cannot create, delete or produce to them."""
MAX_NAME_LENGTH = 249  # `<topic>-<partition>` with Kafka's suffixes has to be a valid file name
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]{0,9})")


def check_topic_name(name: str) -> None:
    """Raise InvalidTopic with the reason if Kafka would refuse `name`."""
    if not name:
        raise InvalidTopic("a topic name must not be empty (INVALID_TOPIC_EXCEPTION)")
    if name in {".", ".."}:
        raise InvalidTopic(f"a topic cannot be named {name!r} (INVALID_TOPIC_EXCEPTION)")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(
            f"a topic name has at most {MAX_NAME_LENGTH} characters, got {len(name)} "
            "(INVALID_TOPIC_EXCEPTION)"
        )
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"topic {name!r} has characters other than ASCII letters, digits, '.', '_' and '-' "
            "(INVALID_TOPIC_EXCEPTION)"
        )


def parse_directory(name: str) -> TopicPartition | None:
    """Return the topic and partition of a directory such as `orders-3`, or None for another name."""
    match = _DIRECTORY.fullmatch(name)
    if match is None or not _LEGAL.fullmatch(match["topic"]) or int(match["partition"]) > MAX_INT32:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))
