"""Topics for groups to read."""

from wire.confluent import make_topic, send, sent_offsets
from wire.group_stories.reading import Place
from wire.requests import fresh_name


def new_topic(bootstrap: str, *, partitions: int, records: int = 0, prefix: str = "group") -> str:
    """A topic with `records` in each partition, their values the numbers from 0."""
    name = fresh_name(prefix)
    make_topic(bootstrap, name, partitions=partitions)
    for partition in range(partitions):
        write(bootstrap, name, partition, range(records))
    return name


def write(bootstrap: str, topic: str, partition: int, numbers: range) -> list[int]:
    """Add numbers to a partition and return their offsets."""
    messages = [{"value": b"%d" % number, "partition": partition} for number in numbers]
    return sent_offsets(send(bootstrap, topic, messages))


def all_of(topic: str, partitions: int) -> frozenset[Place]:
    return frozenset(Place(topic, number) for number in range(partitions))
