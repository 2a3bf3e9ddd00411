"""The replicas of this broker: created, led, followed and deleted as the controller says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from operator import attrgetter
from typing import NamedTuple, Protocol

from headrace.broker.image import ClusterImage, TopicImage
from headrace.broker.meters import Meters
from headrace.broker.peers.peer import AskController, Peer
from headrace.broker.replicas.deletions import Deletions
from headrace.broker.replicas.fetcher import Fetchers, FollowerContext
from headrace.broker.replicas.isr_changes import IsrChanges
from headrace.broker.replicas.partition import Partition, monotonic_ms
from headrace.broker.replicas.received_state import (
    image_to_change,
    is_known,
    is_stale,
    registration_of,
    state_of,
)
from headrace.broker.replicas.repairs import Repairs
from headrace.broker.replicas.seeding import Seedings
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.broker.slices import STEP, Steps, in_slices
from headrace.protocol.between_brokers.update_metadata import (
    FULL,
    NOT_A_PART,
    TOPIC_IS_GONE,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.fields import ZERO_UUID
from headrace.protocol.ids import TopicPartition
from headrace.replication.election import NO_LEADER
from headrace.replication.rate import Rate, is_throttled
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import StorageError

logger = logging.getLogger(__name__)


class _StaleSender(Exception):
    """An UpdateMetadata has become stale while it was applied."""

    def __init__(self, code: ErrorCode) -> None:
        super().__init__(f"an UpdateMetadata has become stale: {code.name}")
        self.code = code


class _TopicSettings(NamedTuple):
    """The settings of a topic that its replicas use."""

    own: Mapping[str, str]
    log_config: LogConfig
    min_insync_replicas: int
    throttled_leaders: Collection[str]
    throttled_followers: Collection[str]


class ReplicaListener(Protocol):
    """What else of a broker depends on its replicas."""

    def updated(self) -> None:
        """The controller has told this broker the state of its cluster."""

    def topic_changed(self, topic: TopicImage, own: Mapping[str, str]) -> None:
        """The replicas of `topic` have the roles of the current metadata; `own` is its configuration."""

    def topic_removed(self, name: str) -> None:
        """A topic was deleted; its partitions are about to be."""


class Replicas:
    """Partitions of this broker."""

    def __init__(
        self,
        broker_id: int,
        image: ClusterImage,
        meters: Meters,
        listener: ReplicaListener,
        *,
        config: Callable[[], BrokerConfig],
        logs: Callable[[], LogDirectory],
        broker_epoch: Callable[[], int],
        connect_to: Callable[[int], Awaitable[Peer]],
        ask_controller: AskController,
    ) -> None:
        self.partitions: dict[TopicPartition, Partition] = {}
        self.moved: set[Partition] = set()  # whose high watermark is to be written to a checkpoint
        self.rate_to_followers = Rate(_rate(config(), "leader"))
        self.rate_as_follower = Rate(_rate(config(), "follower"))
        self._broker_id = broker_id
        self._image = image
        self._meters = meters
        self._listener = listener
        self._config = config
        self._logs = logs
        self._broker_epoch = broker_epoch
        self.fetchers = Fetchers(
            FollowerContext(
                broker_id,
                image,
                config,
                broker_epoch,
                connect_to,
                self.note_truncation,
                self.rate_as_follower,
            )
        )
        self._deletions = Deletions(logs)
        self._seedings = Seedings(
            broker_id,
            image,
            logs=logs,
            connect_to=connect_to,
            on_end=self._seeding_ended,
            on_discarded=self._deletions.unlink,
        )
        self.isr_changes = IsrChanges(
            broker_id,
            self.partitions,
            broker_epoch=broker_epoch,
            max_lag_ms=lambda: config().integer("replica.lag.time.max.ms"),
            live_brokers=lambda: image.brokers,
            ask_controller=ask_controller,
        )
        self.repairs = Repairs(
            broker_id,
            self.partitions,
            suspected=lambda: logs().suspected,
            live_brokers=lambda: image.brokers,
            connect_to=connect_to,
            consider=self.isr_changes.consider,
        )
        self.controller_epoch = 0  # the newest that a message of a controller had
        self._is_updated = False
        self._listed: set[str] = set()  # the topics of the parts of the cluster's state so far
        self._next_part = 0
        self._updating = asyncio.Lock()

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed broker settings to every replica."""
        self.rate_to_followers.bytes_per_second = _rate(config, "leader")
        self.rate_as_follower.bytes_per_second = _rate(config, "follower")
        for topic in self._image.topics.values():
            self.use(topic)

    async def take(self, update: UpdateMetadataRequest) -> ErrorCode:
        """Apply an UpdateMetadata; one of a former controller, or to an earlier broker epoch, is refused.

        Updates are applied one after the other, each in slices.
        """
        async with self._updating:
            await self._deletions.rename()  # of an update whose sender has disconnected
            try:
                return await in_slices(self._take(update))
            finally:
                await self._deletions.rename()

    def _take(self, update: UpdateMetadataRequest) -> Steps[ErrorCode]:
        stale = self.check_sender(update.controller_epoch, update.broker_epoch)
        if stale is not ErrorCode.NONE:
            return stale
        if not self._is_updated and not self._confirm_losses():
            return ErrorCode.KAFKA_STORAGE_ERROR
        if update.part not in {NOT_A_PART, 0, self._next_part}:
            logger.warning("part %d of the cluster's state, expected %d", update.part, self._next_part)
            return ErrorCode.INVALID_REQUEST
        image = self._image
        image.controller_id = update.controller_id
        self._take_brokers(update.live_brokers)
        try:
            for state in update.topic_states:
                yield from self._create_replicas(state, update)
                yield from self._take_topic(state, update)
            if self._is_whole_now(update):
                listed, self._listed = self._listed, set()
                yield from self._drop_unknown(listed)
                self._ensure_current(update)
        except _StaleSender as error:
            return error.code
        image.version += 1
        if update.part == NOT_A_PART or update.is_last_part:
            self._is_updated = True
            self._listener.updated()
        return ErrorCode.NONE

    def _is_whole_now(self, update: UpdateMetadataRequest) -> bool:
        """Note the topics of the whole state; return whether `update` was all of it or its last part."""
        if update.part == NOT_A_PART and update.type != FULL:
            return False
        if update.part in {NOT_A_PART, 0}:
            self._listed = set()
        self._listed.update(state.topic_name for state in update.topic_states)
        self._next_part = update.part + 1
        return update.part == NOT_A_PART or update.is_last_part

    def _pause(self, update: UpdateMetadataRequest) -> Steps[None]:
        """Let requests be handled; raise _StaleSender if another controller has sent a message meanwhile.

        This broker may also have registered again: it must not get the roles of its last registration.
        """
        self._image.version += 1
        yield
        self._ensure_current(update)

    def _ensure_current(self, update: UpdateMetadataRequest) -> None:
        code = self.check_sender(update.controller_epoch, update.broker_epoch)
        if code is not ErrorCode.NONE:
            raise _StaleSender(code)

    def check_sender(self, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        """Return the error for a message of a former controller, or to an earlier epoch of this broker."""
        if controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if broker_epoch != self._broker_epoch():
            return ErrorCode.STALE_BROKER_EPOCH
        self.controller_epoch = controller_epoch
        return ErrorCode.NONE

    def _confirm_losses(self) -> bool:
        """Record that the controller knows that this broker may have lost records, before it fetches any.

        From then on this broker joins ISRs and may become the only replica with some records. If it were
        still marked after another crash that lost nothing, replicas without those records would be preferred.
        """
        try:
            self._logs().losses.confirmed()
        except OSError as error:
            logger.error("this broker cannot use its replicas: %s", error)  # noqa: TRY400  the message has the reason
            return False
        return True

    def _take_brokers(self, live: Collection[UpdateMetadataBroker]) -> None:
        image = self._image
        before = dict(image.broker_epochs)
        image.brokers = {broker.id: registration_of(broker) for broker in live}
        image.broker_epochs = {broker.id: broker.broker_epoch for broker in live}
        for broker_id, epoch in image.broker_epochs.items():
            if before.get(broker_id, epoch) != epoch:
                self.fetchers.leader_is_back(broker_id)

    def _create_replicas(self, topic: UpdateMetadataTopicState, update: UpdateMetadataRequest) -> Steps[None]:
        """Create the replicas that this broker does not have yet; `_take_topic` gives them their roles."""
        old = self._image.topics.get(topic.topic_name)
        if old is not None and old.topic_id != topic.topic_id:
            return  # the earlier topic of this name has to be deleted first
        config = self._config().log_config({})
        for number, state in enumerate(topic.partition_states):
            if not number % STEP:
                yield from self._pause(update)
            id_ = TopicPartition(topic.topic_name, state.partition_index)
            is_here = self._broker_id in state.replicas and not is_stale(state, old)
            if is_here and id_ not in self._logs().failed:
                self._seed_if_possible(id_, topic.topic_id, state, config)
                self._try_to_ensure(id_, topic.topic_id, config)

    def _seed_if_possible(
        self, id_: TopicPartition, topic_id: bytes, state: UpdateMetadataPartitionState, config: LogConfig
    ) -> None:
        """Begin to seed a replica that has no log here, if another broker of this node can; see `seeding`."""
        if id_ in self._seedings:
            if self._broker_id in {state.leader, *state.isr}:
                self._seedings.cancel(id_)  # there is no leader to wait for
        elif id_ not in self._logs().logs:
            source = self._seedings.source_of(state.leader, state.isr, state.replicas)
            if source is not None:
                self._seedings.begin(id_, topic_id, source, config)

    def _seeding_ended(self, id_: TopicPartition, topic_id: bytes) -> None:
        """Give the replica its role, or delete it if it was removed meanwhile."""
        topic = self._image.topics.get(id_.topic)
        is_here = topic is not None and self._broker_id in topic.replicas.get(id_.partition, ())
        if topic is not None and is_here:
            settings = self._settings_of(topic)
            self._use_partition(topic, id_.partition, settings)
            self._listener.topic_changed(topic, settings.own)
        elif self._logs().topic_ids.get(id_) == topic_id:
            self._drop_if_here(id_)

    def _take_topic(self, topic: UpdateMetadataTopicState, update: UpdateMetadataRequest) -> Steps[None]:
        """Apply the states of a topic's partitions, each with the role of this broker's replica.

        Clients see a new topic with all its partitions or not at all. Coordinators follow the leaders of an
        internal topic, so its roles change in one step.
        """
        image, name = self._image, topic.topic_name
        old = image.topics.get(name)
        if any(state.leader == TOPIC_IS_GONE for state in topic.partition_states):
            # With another id it was an earlier topic of this name.
            if old is None or topic.topic_id in {ZERO_UUID, old.topic_id}:
                yield from self._forget_topic(name)
                self._ensure_current(update)
            return
        if old is not None and old.topic_id != topic.topic_id:
            yield from self._forget_topic(name)
            self._deletions.rename_now()  # the new topic has the same directories
            self._ensure_current(update)
            old = None
        if old is None:
            image.topic_configs[name] = {config.name: config.value for config in topic.configs}
        taken = image_to_change(old, topic, whole=update.type == FULL)
        settings = self._settings_of(taken)
        for number, state in enumerate(sorted(topic.partition_states, key=attrgetter("partition_index"))):
            if not number % STEP and not taken.is_internal:
                yield from self._pause(update)
            index = state.partition_index
            if old is not None and is_stale(state, old):
                taken.replicas[index], taken.states[index] = old.replicas[index], old.states[index]
            elif old is None or not is_known(state, old):
                replicas = tuple(state.replicas)
                taken.replicas[index], taken.states[index] = replicas, state_of(name, state, replicas)
            elif TopicPartition(name, index) in self.partitions or self._broker_id not in state.replicas:
                taken.replicas[index], taken.states[index] = old.replicas[index], old.states[index]
                continue
            self._use_partition(taken, index, settings)
        image.put_topic(taken)
        self._listener.topic_changed(taken, settings.own)

    def _forget_topic(self, name: str) -> Steps[None]:
        topic = self._image.topics.get(name)
        self._image.remove_topic(name)
        if topic is not None:
            yield from self._drop_topic(name, [TopicPartition(name, index) for index in topic.replicas])
        else:
            yield from self._drop_topic(name, self._stored(name))

    def _stored(self, name: str) -> list[TopicPartition]:
        """Return the partitions of a topic whose logs this broker has, by looking at all logs."""
        logs = self._logs()
        return [id_ for id_ in (*logs.logs, *logs.failed) if id_.topic == name]

    def _drop_unknown(self, known: set[str]) -> Steps[None]:
        """Delete the logs of topics that were deleted while this broker was stopped."""
        for name in self._image.topics.keys() - known:
            yield from self._forget_topic(name)
        logs = self._logs()
        for name in {id_.topic for id_ in (*logs.logs, *logs.failed)} - known:
            logger.warning("topic %s was deleted while this broker was stopped: deleting its logs", name)
            yield from self._drop_topic(name, self._stored(name))

    def use(self, topic: TopicImage) -> None:
        """Create, configure and delete this broker's replicas of `topic`, and give them their roles."""
        settings = self._settings_of(topic)
        for index in topic.replicas:
            self._use_partition(topic, index, settings)
        self._listener.topic_changed(topic, settings.own)

    def _settings_of(self, topic: TopicImage) -> _TopicSettings:
        broker_config = self._config()
        own = self._image.topic_configs.get(topic.name, {})
        try:
            config = broker_config.log_config(own)
        except InvalidSetting as error:
            logger.warning("the configuration of topic %s in ZooKeeper is ignored: %s", topic.name, error)
            own = {}
            config = broker_config.log_config(own)
        return _TopicSettings(
            own, config, broker_config.min_insync_replicas(own), *broker_config.throttled_replicas(own)
        )

    def _use_partition(self, topic: TopicImage, index: int, settings: _TopicSettings) -> None:
        id_ = TopicPartition(topic.name, index)
        replicas = topic.replicas[index]
        if self._broker_id not in replicas:
            self._drop_if_here(id_)
            return
        if id_ in self._logs().failed:
            return
        partition = self._try_to_ensure(id_, topic.topic_id, settings.log_config)
        if partition is None:
            return
        partition.log.use_config(settings.log_config)
        partition.use_min_insync_replicas(settings.min_insync_replicas)
        partition.throttled_for_followers = is_throttled(settings.throttled_leaders, index, self._broker_id)
        partition.throttled_as_follower = is_throttled(settings.throttled_followers, index, self._broker_id)
        state = topic.states.get(index)
        if state is not None and partition.become(state, replicas, monotonic_ms()):
            self.fetchers.follow(partition)

    def _try_to_ensure(self, id_: TopicPartition, topic_id: bytes, config: LogConfig) -> Partition | None:
        """Return the replica, created if need be; None if it is being seeded, or cannot be created."""
        if id_ in self._seedings:
            return None
        try:
            return self._ensure(id_, topic_id, config)
        except (StorageError, OSError) as error:
            logger.error("%s cannot be created: %s", id_, error)  # noqa: TRY400  the message has the reason
            return None

    def _ensure(self, id_: TopicPartition, topic_id: bytes, config: LogConfig) -> Partition:
        partition = self.partitions.get(id_)
        if partition is not None and partition.topic_id == topic_id:
            return partition
        logs = self._logs()
        if id_ in logs.logs and logs.topic_ids.get(id_) not in {None, topic_id}:
            self._drop_if_here(id_)  # it belongs to an earlier topic of this name
        log = logs.logs.get(id_)
        if log is None:
            log = logs.create(id_, topic_id, config)
        elif id_ not in logs.topic_ids:
            logs.set_topic_id(id_, topic_id)
        partition = Partition(
            id_,
            topic_id,
            log,
            self._broker_id,
            high_watermark=logs.high_watermarks.get(id_, 0),
            meter=self._meters.topic(id_.topic),
            moved=self.moved,
        )
        self.partitions[id_] = partition
        return partition

    def _drop_if_here(self, id_: TopicPartition) -> None:
        """Delete a replica that this broker no longer has; requests that wait for it are answered."""
        self._seedings.cancel(id_)
        partition = self.partitions.pop(id_, None)
        if partition is not None:
            self.fetchers.forget(id_)
            partition.close()
        logs = self._logs()
        if id_ in logs.logs or id_ in logs.failed:
            logs.delete(id_)
            self._deletions.unlink()

    def _drop_topic(self, name: str, partitions: Collection[TopicPartition]) -> Steps[None]:
        """Close the logs of a deleted topic; requests that wait for it are answered.

        `take` deletes them at its end. The steps complete even if another controller sends a message
        meanwhile: a topic that is deleted stays deleted.
        """
        self._listener.topic_removed(name)
        self._seedings.cancel_topic(name)
        logs = self._logs()
        gone = [id_ for id_ in partitions if id_ in logs.logs or id_ in logs.failed]
        dropped = [self.partitions.pop(id_, None) for id_ in gone]  # at once: nobody uses one of them alone
        self._meters.forget(name)
        for number, (id_, partition) in enumerate(zip(gone, dropped, strict=True)):
            if not number % STEP:
                yield
            if partition is not None:
                self.fetchers.forget(id_)
                partition.close()
            self._deletions.retire(id_)

    async def open_truncated(self) -> None:
        """Open the logs that are damaged below what was flushed without the damage, if another broker leads.

        This replica is not in the ISR then, and fetches what it lacks. Otherwise its records may be the only
        ones, and the log stays offline. Updates wait, because they could delete the log meanwhile.
        """
        logs = self._logs()
        for id_ in list(logs.truncatable):
            async with self._updating:
                topic = self._image.topics.get(id_.topic)
                state = None if topic is None else topic.states.get(id_.partition)
                if topic is None or state is None or id_ not in logs.truncatable:
                    continue
                if state.leader == NO_LEADER or self._broker_id in {state.leader, *state.isr, *state.elr}:
                    continue
                config = self._settings_of(topic).log_config
                try:
                    log = await asyncio.to_thread(logs.open_truncated, id_, config)
                except (StorageError, KafkaError, OSError):
                    logger.exception("%s could not be truncated, and stays offline", id_)
                    del logs.truncatable[id_]
                    continue
                logs.add_truncated(id_, log)
                end = log.log_end_offset
                logger.warning("%s: truncated to offset %d, fetching from broker %d", id_, end, state.leader)
                self.use(topic)
                if id_ in self.partitions:
                    await self.note_truncation(self.partitions[id_])

    async def note_truncation(self, partition: Partition) -> None:
        """Write the checkpoints after a truncation: after a crash they must not point past the log's end."""
        logs = self._logs()
        end = partition.log.log_end_offset
        if logs.cleaner_offsets.get(partition.id, 0) > end:
            logs.cleaner_offsets[partition.id] = end
        logs.high_watermarks[partition.id] = partition.high_watermark
        await asyncio.to_thread(logs.prepare_checkpoint())

    def stop(self) -> None:
        self.isr_changes.stop()
        self.repairs.stop()
        self._seedings.stop()
        self.fetchers.stop()


def _rate(config: BrokerConfig, role: str) -> int:
    return max(1, config.integer(f"{role}.replication.throttled.rate"))
