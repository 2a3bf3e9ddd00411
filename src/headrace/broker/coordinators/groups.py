"""The coordinators of groups: the runtime of `__consumer_offsets`, and what groups have to know."""

import logging
import uuid
from functools import partial
from typing import Final

from headrace.broker.coordinators.internal_topics import InternalTopicSettings
from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime
from headrace.broker.coordinators.shard import CoordinatorShard
from headrace.coordinators.errors import CoordinatorError
from headrace.coordinators.group.coordinator import GroupCoordinator
from headrace.coordinators.group.limits import ConsumerTimeouts, GroupLimits
from headrace.coordinators.group.topics import Topic, Topics
from headrace.storage.topics import INTERNAL_TOPICS

OFFSETS_TOPIC: Final = "__consumer_offsets"
OFFSETS_TOPIC_SETTINGS: Final = InternalTopicSettings(
    partitions="offsets.topic.num.partitions",
    replicas="offsets.topic.replication.factor",
    segment_bytes="offsets.topic.segment.bytes",
)

logger = logging.getLogger(__name__)

GroupShard = CoordinatorShard[GroupCoordinator]


class Groups:
    """The groups that this broker coordinates."""

    def __init__(self, host: CoordinatorHost, limits: GroupLimits) -> None:
        self.limits = limits
        self.timeouts: dict[str, ConsumerTimeouts] = {}  # of groups with settings of their own
        self.runtime = CoordinatorRuntime(OFFSETS_TOPIC, host, self._new_coordinator, self.show_topics)
        self._image = host.image
        self._topics = Topics()
        self._image_version = -1  # that `_topics` was made from

    def _new_coordinator(self) -> GroupCoordinator:
        return GroupCoordinator(self.limits, lambda: str(uuid.uuid4()), self.timeouts)

    def shard(self, group_id: str) -> GroupShard:
        """Return the coordinator of the group, if this broker may answer for it."""
        return self.runtime.shard(group_id)

    def forget_topic(self, name: str) -> None:
        """Delete the offsets of a topic that was deleted, also in partitions that are still being loaded."""
        if name == OFFSETS_TOPIC:
            self.runtime.stop()
            return
        for shard in self.runtime.all_shards:
            shard.when_loaded(partial(_forget_topic, shard, name))

    def expire_offsets(self) -> None:
        """Delete offsets that are older than offsets.retention.minutes."""
        for shard in self.runtime.shards:
            try:
                shard.write_in_parts(GroupCoordinator.expire_offsets)
            except CoordinatorError as error:
                logger.warning("groups: offsets in %s could not expire: %s", shard.partition.id, error)

    def configure(self, group_id: str, timeouts: ConsumerTimeouts) -> None:
        """Use the group's own settings from the next heartbeat of each member on."""
        if timeouts == ConsumerTimeouts():
            self.timeouts.pop(group_id, None)
        else:
            self.timeouts[group_id] = timeouts

    def use(self, limits: GroupLimits) -> None:
        """Use other limits from now on: the broker's settings have changed."""
        self.limits = limits
        for shard in self.runtime.all_shards:
            shard.machine.use(limits)

    def show_topics(self, coordinator: GroupCoordinator) -> None:
        """Give a coordinator the topics of the current metadata."""
        image = self._image
        if self._image_version != image.version:
            self._image_version = image.version
            by_name = {
                topic.name: Topic(topic.topic_id, len(topic.replicas)) for topic in image.topics.values()
            }
            if by_name != self._topics.by_name:  # a change of leaders does not concern groups
                self._topics = Topics.of(self._topics.version + 1, by_name, INTERNAL_TOPICS)
        coordinator.topics = self._topics


def _forget_topic(shard: GroupShard, name: str) -> None:
    try:
        shard.write_in_parts(lambda coordinator, now_ms: coordinator.forget_topic(name, now_ms))
    except CoordinatorError as error:
        logger.warning("groups: offsets of topic %s could not be deleted: %s", name, error)
