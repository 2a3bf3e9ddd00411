"""The replicas that this broker has: made, led, followed and dropped as the controller says."""

import asyncio
import logging
from collections.abc import Collection
from typing import TYPE_CHECKING

from headrace.broker.config import BrokerConfig
from headrace.broker.fetcher import Fetchers
from headrace.broker.image import TopicImage
from headrace.broker.isr_changes import IsrChanges
from headrace.broker.partition import Partition, monotonic_ms
from headrace.broker.settings import InvalidSetting
from headrace.coordination.znodes import BrokerRegistration, PartitionState
from headrace.protocol.errors import ErrorCode
from headrace.protocol.fields import ZERO_UUID
from headrace.protocol.ids import TopicPartition
from headrace.protocol.update_metadata import (
    FULL,
    TOPIC_IS_GONE,
    UpdateMetadataBroker,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from headrace.replication.rate import Rate, is_throttled
from headrace.security.listeners import Endpoint, SecurityProtocol
from headrace.storage.errors import StorageError

if TYPE_CHECKING:
    from headrace.broker.server import Broker

logger = logging.getLogger(__name__)


class Replicas:
    """Partitions of this broker, and who else has them."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.partitions: dict[TopicPartition, Partition] = {}
        self.fetchers = Fetchers(broker)
        self.isr_changes = IsrChanges(broker)
        self.rate_to_followers = Rate(_rate(broker.config, "leader"))
        self.rate_as_follower = Rate(_rate(broker.config, "follower"))
        self._controller_epoch = 0  # the newest that was heard of

    def use_config(self, config: BrokerConfig) -> None:
        """The broker's settings have changed."""
        self.rate_to_followers.bytes_per_second = _rate(config, "leader")
        self.rate_as_follower.bytes_per_second = _rate(config, "follower")
        for topic in self._broker.image.topics.values():
            self.use(topic)

    # -- what the controller says --------------------------------------------------------------

    def take(self, update: UpdateMetadataRequest) -> ErrorCode:
        """Make what the controller says true here; what comes from the past changes nothing."""
        broker = self._broker
        stale = self.check_sender(update.controller_epoch, update.broker_epoch)
        if stale is not ErrorCode.NONE:
            return stale
        if not broker.ready.is_set() and not self._end_doubt():
            return ErrorCode.KAFKA_STORAGE_ERROR
        image = broker.image
        image.controller_id = update.controller_id
        self._take_brokers(update.live_brokers)
        for state in update.topic_states:
            self._take_topic(state, whole=update.type == FULL)
        if update.type == FULL:
            self._drop_unknown({state.topic_name for state in update.topic_states})
        image.version += 1
        broker.lease.updated()
        broker.ready.set()
        return ErrorCode.NONE

    def check_sender(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Return an error for a message of an earlier controller, or to an earlier life of this broker."""
        if controller_epoch < self._controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if broker_epoch != self._broker.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        self._controller_epoch = controller_epoch
        return ErrorCode.NONE

    def _end_doubt(self) -> bool:
        """Note that the controller knows what may be missing here, before any of it is made good.

        From then on this broker comes into sync, and may be all that others count on. Were it in doubt again
        after a crash that has cost it nothing, those would be preferred to it that lack what it has.
        """
        try:
            self._broker.logs.remember_boot()
        except OSError as error:
            logger.error("this broker can take on no replica: %s", error)  # noqa: TRY400  the sentence says it all
            return False
        return True

    def _take_brokers(self, live: Collection[UpdateMetadataBroker]) -> None:
        image = self._broker.image
        before = dict(image.broker_epochs)
        image.brokers = {each.id: _registration(each) for each in live}
        image.broker_epochs = {each.id: each.broker_epoch for each in live}
        for broker_id, epoch in image.broker_epochs.items():
            if before.get(broker_id, epoch) != epoch:
                self.fetchers.leader_is_back(broker_id)

    def _take_topic(self, update: UpdateMetadataTopicState, *, whole: bool) -> None:
        image, name = self._broker.image, update.topic_name
        old = image.topics.get(name)
        if any(state.leader == TOPIC_IS_GONE for state in update.partition_states):
            if old is None or update.topic_id in {ZERO_UUID, old.topic_id}:  # else it is of an earlier one
                self._forget_topic(name)
            return
        if old is not None and old.topic_id != update.topic_id:
            self._forget_topic(name)
            old = None
        if old is None:
            image.topic_configs[name] = {config.name: config.value for config in update.configs}
        replicas = {} if old is None or whole else dict(old.replicas)
        states = {} if old is None or whole else dict(old.states)
        for state in update.partition_states:
            replicas[state.partition_index] = tuple(state.replicas)
            states[state.partition_index] = PartitionState(
                topic=name,
                partition=state.partition_index,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=tuple(state.isr),
                controller_epoch=state.controller_epoch,
                elr=tuple(state.eligible_leader_replicas),
                last_leader=state.last_known_leader,
                version=state.zk_version,
            )
        topic = TopicImage(
            name, update.topic_id, dict(sorted(replicas.items())), dict(sorted(states.items()))
        )
        image.put_topic(topic)
        self.use(topic, [state.partition_index for state in update.partition_states])

    def _forget_topic(self, name: str) -> None:
        if name in self._broker.image.topics:
            self._broker.image.remove_topic(name)
        self.drop_topic(name)

    def _drop_unknown(self, known: set[str]) -> None:
        """Topics that went while this broker was away."""
        for name in self._broker.image.topics.keys() - known:
            self._forget_topic(name)
        for name in {id_.topic for id_ in (*self._broker.logs.logs, *self._broker.logs.failed)} - known:
            logger.warning("topic %s was deleted while this broker was away: dropping its logs", name)
            self.drop_topic(name)

    # -- making it true ------------------------------------------------------------------------

    def use(self, topic: TopicImage, indexes: Collection[int] | None = None) -> None:
        """Have the replicas of `topic` that are this broker's, in their roles and with their settings."""
        broker = self._broker
        own = broker.image.topic_configs.get(topic.name, {})
        try:
            config = broker.config.log_config(own)
        except InvalidSetting as error:
            logger.warning("the settings of topic %s in ZooKeeper are not used: %s", topic.name, error)
            own = {}
            config = broker.config.log_config(own)
        min_insync_replicas = broker.config.min_insync_replicas(own)
        leader_list, follower_list = broker.config.throttled_replicas(own)
        had = len(broker.logs.logs)
        for index in topic.replicas if indexes is None else indexes:
            id_ = TopicPartition(topic.name, index)
            replicas = topic.replicas[index]
            if broker.broker_id not in replicas:
                self._drop_if_here(id_)
                continue
            if id_ in broker.logs.failed:
                continue
            try:
                partition = self._ensure(id_, topic.topic_id)
            except (
                StorageError,
                OSError,
            ) as error:
                logger.error("%s cannot be made: %s", id_, error)  # noqa: TRY400  the sentence says it all
                continue
            partition.log.config = config
            partition.use_min_insync_replicas(min_insync_replicas)
            partition.throttled_for_followers = is_throttled(leader_list, index, broker.broker_id)
            partition.throttled_as_follower = is_throttled(follower_list, index, broker.broker_id)
            state = topic.states.get(index)
            if state is not None and partition.become(state, replicas, monotonic_ms()):
                self.fetchers.follow(partition)
        if len(broker.logs.logs) != had:
            broker.logs.sync()
        broker.schemas.use(topic, broker.config.topic_values(own))
        if topic.name in broker.coordinators:
            broker.coordinators[topic.name].follow(topic)

    def _ensure(self, id_: TopicPartition, topic_id: bytes) -> Partition:
        partition = self.partitions.get(id_)
        if partition is not None and partition.topic_id == topic_id:
            return partition
        logs = self._broker.logs
        if id_ in logs.logs and logs.topic_ids.get(id_) not in {None, topic_id}:
            self._drop_if_here(id_)  # of an earlier topic with this name
        log = logs.logs.get(id_)
        if log is None:
            log = logs.create(id_, topic_id, self._broker.config.log_config({}), sync=False)
        partition = Partition(
            id_,
            topic_id,
            log,
            self._broker.broker_id,
            high_watermark=logs.high_watermarks.get(id_, 0),
            meter=self._broker.meters.topic(id_.topic),
        )
        self.partitions[id_] = partition
        return partition

    def _drop_if_here(self, id_: TopicPartition) -> None:
        """A replica that is not this broker's any more: its log goes, and whoever waits for it is told."""
        partition = self.partitions.pop(id_, None)
        if partition is not None:
            self.fetchers.forget(id_)
            partition.close()
        if id_ in self._broker.logs.logs or id_ in self._broker.logs.failed:
            self._broker.logs.delete(id_)
            self._broker.logs.unlink_deleted()

    def drop_topic(self, name: str) -> None:
        """Remove every log of a topic that is gone; those who wait for it are told so."""
        self._broker.groups.forget_topic(name)
        logs = self._broker.logs
        gone = [id_ for id_ in (*logs.logs, *logs.failed) if id_.topic == name]
        for id_ in gone:
            partition = self.partitions.pop(id_, None)
            if partition is not None:
                self.fetchers.forget(id_)
                partition.close()
        if gone:
            logs.delete(*gone)
            logs.unlink_deleted()
        self._broker.meters.forget(name)
        self._broker.schemas.forget(name)

    async def note_truncation(self, partition: Partition) -> None:
        """A log has lost its end: what says that more of it is safe, or clean, must not survive a crash."""
        logs = self._broker.logs
        end = partition.log.log_end_offset
        if logs.cleaner_offsets.get(partition.id, 0) > end:
            logs.cleaner_offsets[partition.id] = end
        logs.high_watermarks[partition.id] = partition.high_watermark
        await asyncio.to_thread(logs.prepare_checkpoint())

    def stop(self) -> None:
        self.isr_changes.stop()
        self.fetchers.stop()


def _rate(config: BrokerConfig, role: str) -> int:
    return max(1, config.integer(f"{role}.replication.throttled.rate"))


def _registration(broker: UpdateMetadataBroker) -> BrokerRegistration:
    return BrokerRegistration(
        broker_id=broker.id,
        endpoints=[
            Endpoint(each.listener, each.host, each.port, SecurityProtocol(each.security_protocol))
            for each in broker.endpoints
        ],
        timestamp_ms=-1,
        rack=broker.rack,
    )
