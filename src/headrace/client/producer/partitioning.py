"""The partition of a record: by its key, round robin without one, or by the user's function.

librdkafka hashes keys with murmur2, as Java's client does, so that all clients agree on the partition of a
key. Records without a key go to the partitions in turn.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from headrace.client.errors import ClientError, NoSuchTopic, why_no_topic
from headrace.client.settings import whole

T = TypeVar("T")

ANY: Final = -1  # librdkafka chooses, by the key
FRESH_S: Final = 60.0  # how long the number of partitions is cached

Partitioner = Callable[[str, Any, Any, int], int]  # (topic, key, value, how many partitions)
CountPartitions = Callable[[str], int]  # 0: the topic does not exist yet


class _Known(dict[str, T]):
    """The numbers of partitions of topics, cached for a minute."""

    def __init__(self, count: CountPartitions, now_s: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._count = count
        self._now_s = now_s
        self._asked_at_s = now_s()

    def _counted(self, topic: str) -> int:
        if why_no_topic(topic):  # for an empty name librdkafka would describe all topics
            raise NoSuchTopic(topic)
        return self._count(topic)

    def look_again(self) -> None:
        """Forget entries that are too old; called now and then."""
        if self._now_s() - self._asked_at_s >= FRESH_S:
            self._asked_at_s = self._now_s()
            self.clear()


class Turns(_Known[Iterator[int]]):
    """The partitions of each topic, round robin: `next(turns[topic])`. Threads may share it."""

    def __missing__(self, topic: str) -> Iterator[int]:
        count = self._counted(topic)
        if not count:  # the first record may create the topic: not cached
            return iter((ANY,))
        turn = itertools.cycle(range(count))
        self[topic] = turn
        return turn


class Chosen(_Known[int]):
    """Partitions by the user's function, whose results are checked."""

    def __init__(
        self, function: Partitioner, count: CountPartitions, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(count, now_s)
        self._function = function

    def __missing__(self, topic: str) -> int:
        count = self._counted(topic)
        if not count:
            raise ClientError(f"topic {topic} does not exist, so no partition can be chosen: create it")
        self[topic] = count
        return count

    def choose(self, topic: str, key: object, value: object) -> int:
        """Return the function's partition; ClientError if it does not exist."""
        count = self[topic]
        said: Any = self._function(topic, key, value, count)
        partition = whole(said)
        if partition is None or not 0 <= partition < count:
            raise ClientError(
                f"the partitioner returned {said!r} for topic {topic}, which has partitions 0 to {count - 1}"
            )
        return partition
