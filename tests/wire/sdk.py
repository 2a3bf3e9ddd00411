"""Topics for the tests of the SDK, and consumers that notice an end quickly."""

import itertools
from typing import Any, Final

from headrace import Admin, Producer

QUICK: Final[dict[str, Any]] = {"fetch_wait_max_ms": 10}  # the end of a topic is told by an empty reply
_numbers: Final = itertools.count()


def fresh(name: str) -> str:
    """A name that no other test uses."""
    return f"sdk-{name}-{next(_numbers)}"


def topic_of(bootstrap: str, values: list[bytes], *, partitions: int = 1) -> str:
    """A new topic with these records, in turn over its partitions."""
    topic = fresh("topic")
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, partitions=partitions)
    with Producer(bootstrap) as producer:
        for value in values:
            producer.send(topic, value)
    return topic


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]
