"""The tasks that the driver sends to executors."""

from collections.abc import Mapping, Sequence

from pyspark.sql.datasource import InputPartition

from headrace.client.wire.connection import Address
from headrace.tables.reader.offsets import Range


class Task(InputPartition):
    """Ranges that one task reads, and what the driver knows of them: their leader and the ids of topics."""

    def __init__(
        self, ranges: Sequence[Range], topic_ids: Mapping[str, str], leader: Address | None = None
    ) -> None:
        super().__init__(tuple(map(tuple, ranges)))
        self.ranges = tuple(ranges)
        self.topic_ids = {
            topic: topic_ids[topic] for topic, *_ in (part.partition for part in ranges) if topic in topic_ids
        }
        self.leader = leader  # None: it is not known
