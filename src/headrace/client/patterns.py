"""Topics by a regular expression: the one that is none is named."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException

from headrace.client.errors import BadSetting


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
