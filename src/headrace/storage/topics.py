"""Topic names that Kafka accepts, and the directory a partition lives in."""

import re

from headrace.protocol.ids import TopicPartition
from headrace.storage.config import MAX_INT32
from headrace.storage.errors import InvalidTopic

MAX_NAME_LENGTH = 249  # so that `<topic>-<partition>` with Kafka's suffixes stays a legal file name
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")
_DIRECTORY = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]{0,9})")


def check_topic_name(name: str) -> None:
    """Raise InvalidTopic with the reason if Kafka would refuse `name`."""
    if not name:
        raise InvalidTopic("a topic's name cannot be empty")
    if name in {".", ".."}:
        raise InvalidTopic(f"a topic cannot be named {name!r}")
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopic(f"a topic's name has at most {MAX_NAME_LENGTH} characters, got {len(name)}")
    if not _LEGAL.fullmatch(name):
        raise InvalidTopic(
            f"topic {name!r} has characters other than ASCII letters, digits, '.', '_' and '-'"
        )


def parse_directory(name: str) -> TopicPartition | None:
    """`orders-3` as topic and partition, or None if no partition's directory is named so."""
    match = _DIRECTORY.fullmatch(name)
    if match is None or not _LEGAL.fullmatch(match["topic"]) or int(match["partition"]) > MAX_INT32:
        return None
    return TopicPartition(match["topic"], int(match["partition"]))
