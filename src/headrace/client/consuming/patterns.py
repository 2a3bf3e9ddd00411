"""Topics as a consumer is told of them: by name, or by a regular expression."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors import BadSetting, NoSuchTopic


def names_of(topics: object) -> list[str]:
    """The topics that are asked for: one, or several."""
    if isinstance(topics, str):
        return [topics]
    if isinstance(topics, bytes) or not isinstance(topics, Iterable):
        raise NoSuchTopic(topics)
    names = list(topics)
    if not names:
        raise BadSetting("there is no topic to subscribe to: give at least one, or close the consumer")
    for name in names:
        if not isinstance(name, str):
            raise NoSuchTopic(name)
    return names


@contextmanager
def naming_bad_patterns(topics: Sequence[str]) -> Iterator[None]:
    """BadSetting if librdkafka, which has a syntax of its own, cannot read one of these."""
    try:
        yield
    except KafkaException as error:
        patterns = [topic for topic in topics if topic.startswith("^")]
        if error.args[0].code() != KafkaError._INVALID_ARG or not patterns:  # noqa: SLF001
            raise
        bad = [each for each in patterns if not _reads(each)] or patterns
        raise BadSetting(
            f"{' or '.join(bad)} is no regular expression that librdkafka reads: "
            "it knows ( ) [ ] . * + ? | ^ $, and no look-ahead"
        ) from error


def _reads(pattern: str) -> bool:
    try:
        re.compile(pattern)
    except re.error:
        return False
    return True
