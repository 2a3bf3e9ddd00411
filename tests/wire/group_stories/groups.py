"""What an administrator sees of groups, through confluent-kafka's admin client."""

from collections.abc import Iterable
from typing import Any, Final

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from headrace.client.wire.connection import Address, Connection
from headrace.protocol.schema.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from wire.confluent import settings
from wire.group_stories.reading import Place
from wire.group_stories.waiting import TIMEOUT_S

STABLE: Final = ConsumerGroupState.STABLE
EMPTY: Final = ConsumerGroupState.EMPTY
_OFFSET_FETCH: Final = 7  # a version of it
CLASSIC: Final = ConsumerGroupType.CLASSIC
CONSUMER: Final = ConsumerGroupType.CONSUMER


class Groups:
    """Looks at groups, and never takes part in one."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._admin: Any = AdminClient(settings(bootstrap))

    def describe(self, group: str) -> Any:
        """State, type, assignor and members."""
        return self._admin.describe_consumer_groups([group])[group].result(timeout=TIMEOUT_S)

    def state(self, group: str) -> ConsumerGroupState:
        state: ConsumerGroupState = self.describe(group).state
        return state

    def assignments(self, group: str) -> list[frozenset[Place]]:
        """What each member has, the idle ones nothing; the largest first."""
        found = [
            frozenset(Place(each.topic, each.partition) for each in member.assignment.topic_partitions)
            for member in self.describe(group).members
        ]
        return sorted(found, key=len, reverse=True)

    def committed(self, group: str, places: Iterable[Place] | None = None) -> dict[Place, int]:
        """The offsets of a group, or of some partitions of it; without those that have none."""
        found = self._offsets(group, places)
        return {Place(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    def metadata(self, group: str, place: Place) -> str | None:
        """What was told with the commit of a partition, in Kafka's own words.

        confluent-kafka's admin client now and then reads a byte too many: librdkafka's copy has no end.
        """
        wanted = OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])
        host, _, port = self._bootstrap.partition(":")
        connection = Connection(Address(host, int(port)))
        answer = connection.receive(
            connection.send(OffsetFetchRequest(group_id=group, topics=[wanted]), _OFFSET_FETCH)
        )
        connection.close()
        told: str | None = answer.topics[0].partitions[0].metadata
        return told

    def listed(self, **filters: Any) -> dict[str, Any]:
        """Every group by its name, or those of `states` or `types`."""
        answer = self._admin.list_consumer_groups(**filters).result(timeout=TIMEOUT_S)
        assert answer.errors == []
        return {each.group_id: each for each in answer.valid}

    def delete(self, group: str) -> None:
        self._admin.delete_consumer_groups([group])[group].result(timeout=TIMEOUT_S)

    def alter(self, group: str, offsets: dict[Place, int]) -> None:
        """Set offsets of a group that nobody is in."""
        wanted = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        asked = ConsumerGroupTopicPartitions(group, wanted)
        answer = self._admin.alter_consumer_group_offsets([asked])[group].result(timeout=TIMEOUT_S)
        assert [each.error for each in answer.topic_partitions if each.error] == []

    def _offsets(self, group: str, places: Iterable[Place] | None) -> Any:
        wanted = None if places is None else [TopicPartition(*place) for place in places]
        asked = ConsumerGroupTopicPartitions(group, wanted)
        return self._admin.list_consumer_group_offsets([asked])[group].result(TIMEOUT_S).topic_partitions
