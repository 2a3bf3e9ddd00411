"""The controller: it handles one event at a time, writes what the model decides, and updates the brokers."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from headrace.controller import transactions
from headrace.controller.channel import Channel, Link, PeerGone
from headrace.controller.errors import (
    LeaderNotSteppedDown,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicOrPartition,
)
from headrace.controller.handover import Handover
from headrace.controller.model import Changes, ClusterModel, Member, Survey, TopicModel
from headrace.controller.placement import extended
from headrace.controller.store import Rules, first_state, member_of, read_topics
from headrace.controller.transactions import ElectedEpoch, state_of
from headrace.controller.updates import compose
from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, Config, PartitionState, TopicAssignment
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.replication.election import NO_LEADER, Partition, Progress, check_transition

_SURVEY_VERSION, _SURVEY_TIMEOUT_S = 7, 0.5
_DEBUGGING_CONSUMER = -2  # as a replica id: the broker answers for its own log, whoever leads
_LATEST = -1
_RETRY_S = 0.2
UPDATE_WAIT_S = 5.0  # how long a change waits for every broker to acknowledge it
_CONSENT_RETRY_S = 1.0  # after which a leader that has not stepped down is asked again
_LOGGED = 5  # partitions of one write that are logged, each in a line of its own

logger = logging.getLogger(__name__)


class Unsettled:
    """The partitions that `settle` has to compare again: some, or all."""

    def __init__(self) -> None:
        self._keys: set[TopicPartition] = set()
        self._all = False

    def __bool__(self) -> bool:
        return self._all or bool(self._keys)

    def add(self, keys: Collection[TopicPartition] | None) -> None:
        if keys is None:
            self._all = True
        else:
            self._keys.update(keys)

    def take(self) -> Collection[TopicPartition] | None:
        """Return what was added since the last call; None stands for all."""
        keys = None if self._all else self._keys
        self._keys, self._all = set(), False
        return keys


class Controller:
    """The controller of one controller epoch.

    It reads its model when it begins, and again after a write whose outcome is not known.
    """

    def __init__(
        self,
        session: ZooKeeperSession,
        broker_id: int,
        elected: ElectedEpoch,
        *,
        rules: Rules,
        connect: Callable[[int, BrokerRegistration], Awaitable[Link]],
        on_resigned: Callable[[], None],
    ) -> None:
        self.model = ClusterModel()
        self.elected = elected
        self._session = session
        self._broker_id = broker_id
        self._rules = rules
        self._connect = connect
        self._on_resigned = on_resigned
        self._registrations: dict[int, BrokerRegistration] = {}
        self._channels: dict[int, Channel] = {}
        self._lock = asyncio.Lock()
        self._stale = True
        self._resigned = False
        self._settling: asyncio.Task[None] | None = None
        self._unsettled = Unsettled()
        self._handover = Handover(self.model, elected.epoch, self._channels)

    @property
    def epoch(self) -> int:
        return self.elected.epoch

    # -- beginning and ending ------------------------------------------------------------------

    async def begin(self, registrations: Mapping[int, BrokerRegistration], epochs: Mapping[int, int]) -> None:
        """Read the state of the cluster, settle it, and update every broker."""
        async with self._lock:
            self._take_members(registrations, epochs)
            await self._read()
            await self._settle()
        self._open_channels()

    def resign(self) -> None:
        """Stop writing and updating brokers."""
        if not self._resigned:
            self._resigned = True
            for channel in self._channels.values():
                channel.close()
            self._channels.clear()
            if self._settling is not None:
                self._settling.cancel()
            self._on_resigned()

    async def _read(self) -> None:
        """Read all topics, and send them to every broker: earlier updates may have been wrong."""
        self.model.topics = await read_topics(self._session, self.model.members, self._rules)
        self._stale = False
        for key in self._handover.unconfirmed:
            self.model.rewrite(key)
        for channel in self._channels.values():
            channel.queue_everything()
        unwritten = [key for key, partition in self.model.items() if not partition.is_written]
        if unwritten:
            self._settle_soon(unwritten)

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """Hold the lock while topics are written; if that fails, read again what was written."""
        async with self._lock:
            if self._resigned:
                raise NotController("this broker has resigned as the controller (NOT_CONTROLLER)")
            if self._stale:
                await self._read()
            self._stale = True
            try:
                yield
            except BaseException:
                self._settle_soon(None)
                raise
            self._stale = False

    # -- brokers -------------------------------------------------------------------------------

    async def brokers_changed(
        self, registrations: Mapping[int, BrokerRegistration], epochs: Mapping[int, int]
    ) -> None:
        """Handle brokers that came, left, or restarted; a restarted one leads nothing until elected."""
        async with self._lock:
            before = dict(self.model.members)
            back = {each for each, epoch in epochs.items() if each in before and before[each].epoch != epoch}
            for broker_id in (before.keys() - registrations.keys()) | back:
                del self.model.members[broker_id]
                self.model.unreachable.discard(broker_id)
                self.model.shutting_down.discard(broker_id)
                self._close_channel(broker_id)
            await self._settle()
            new = self._take_members(registrations, epochs)
            for member in new:
                await self._write(self.model.returned(member))
            await self._settle()
        self._open_channels()
        self._queue_for_all(())

    def _take_members(
        self, registrations: Mapping[int, BrokerRegistration], epochs: Mapping[int, int]
    ) -> list[Member]:
        self._registrations = dict(registrations)
        members = {each: member_of(found, epochs[each]) for each, found in registrations.items()}
        new = [member for each, member in members.items() if self.model.members.get(each) != member]
        self.model.members = members
        return new

    def _open_channels(self) -> None:
        for broker_id in self.model.members.keys() - self._channels.keys():
            self._channels[broker_id] = Channel(
                broker_id,
                connect=lambda each: self._connect(each, self._registrations[each]),
                compose=self._compose,
                on_reachable=self._reachable,
                on_replaced=self.resign,
            )

    def _close_channel(self, broker_id: int) -> None:
        channel = self._channels.pop(broker_id, None)
        if channel is not None:
            channel.close()

    def _reachable(self, broker_id: int, reachable: bool) -> None:
        """Note whether updates reach a broker: while they do not, it does not replace a live leader."""
        if reachable == (broker_id not in self.model.unreachable):
            return
        if reachable:
            self.model.unreachable.discard(broker_id)
            logger.info("broker %d is reachable again", broker_id)
        else:
            self.model.unreachable.add(broker_id)
            logger.warning("broker %d is unreachable; it is registered, so it may be alive", broker_id)

    def _compose(self, broker_id: int, keys: Collection[TopicPartition] | None) -> Message:
        return compose(
            self.model,
            self._registrations,
            controller_id=self._broker_id,
            controller_epoch=self.epoch,
            to_broker=broker_id,
            keys=keys,
        )

    # -- settling ------------------------------------------------------------------------------

    def _settle_soon(self, keys: Collection[TopicPartition] | None) -> None:
        """Settle these partitions, or all, in the background."""
        self._unsettled.add(keys)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle_until_done())

    async def _settle_until_done(self) -> None:
        while self._unsettled and not self._resigned:
            keys = self._unsettled.take()
            try:
                async with self._lock:
                    await self._settle(keys)
            except NotController:
                return
            except CoordinationError as error:
                logger.warning("could not settle the cluster, retrying: %s", error)
                await self._try_later()
            except Exception:  # nobody would notice that this task has ended
                logger.exception("could not settle the cluster, retrying")
                await self._try_later()
            else:
                self._queue_for_all(())

    async def _try_later(self) -> None:
        self._stale = True
        self._unsettled.add(None)
        await asyncio.sleep(_RETRY_S)

    async def _settle(self, keys: Collection[TopicPartition] | None = None) -> None:
        if self._stale:
            await self._read()
            keys = None
        survey = await self._survey(keys)
        changes: Changes = {}
        for some in self.model.parts(keys):
            changes |= self.model.settle(survey, some)
            await asyncio.sleep(0)  # lets requests run in between
        for key in self.model.unclean_elections(changes):
            logger.error(
                "%s: unclean election of broker %d, which was neither in the ISR nor in the ELR: records may "
                "be lost",
                key,
                changes[key].leader,
            )
        refused = await self._write(changes)
        if refused:
            asyncio.get_running_loop().call_later(_CONSENT_RETRY_S, self._settle_soon, refused)

    async def _survey(self, keys: Collection[TopicPartition] | None) -> Survey:
        """Ask the candidates for their log end offsets; those that time out are ranked by replica order."""
        wanted = self.model.to_survey(keys)
        by_broker: dict[int, list[TopicPartition]] = {}
        for key, candidates in wanted.items():
            for broker_id in candidates:
                by_broker.setdefault(broker_id, []).append(key)
        found: dict[TopicPartition, dict[int, Progress]] = {}
        answers = await asyncio.gather(*(self._ask_progress(each, keys) for each, keys in by_broker.items()))
        for broker_id, progress in zip(by_broker, answers, strict=True):
            for key, reached in progress.items():
                found.setdefault(key, {})[broker_id] = reached
        return found

    async def _ask_progress(
        self, broker_id: int, keys: list[TopicPartition]
    ) -> dict[TopicPartition, Progress]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for key in keys:
            entry = ListOffsetsPartition(partition_index=key.partition, timestamp=_LATEST)
            topics.setdefault(key.topic, []).append(entry)
        request = ListOffsetsRequest(
            replica_id=_DEBUGGING_CONSUMER,
            topics=[ListOffsetsTopic(name=name, partitions=entries) for name, entries in topics.items()],
        )
        try:
            async with asyncio.timeout(_SURVEY_TIMEOUT_S):
                response = await self._ask(broker_id, request, _SURVEY_VERSION)
        except (PeerGone, TimeoutError):
            return {}
        return {
            TopicPartition(topic.name, entry.partition_index): Progress(entry.leader_epoch, entry.offset)
            for topic in response.topics
            for entry in topic.partitions
            if entry.error_code == ErrorCode.NONE
        }

    async def _ask(self, broker_id: int, request: Message, version: int) -> Any:
        """Return a broker's response, over its channel or, before that is open, over a new connection."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.is_open:
            return await channel.ask(request, version)
        link = await self._connect(broker_id, self._registrations[broker_id])
        try:
            return await link.ask(request, version)
        finally:
            link.close()

    async def _write(self, changes: Changes) -> set[TopicPartition]:
        """Write changes, apply them to the model, and queue them for the brokers.

        A leader that is alive is replaced only if it agrees; return the partitions whose leaders did not.
        """
        if self._resigned:
            raise NotController("this broker has resigned as the controller (NOT_CONTROLLER)")
        changes, refused = await self._handover.with_consent(changes)
        if not changes:
            return refused
        for key, partition in changes.items():
            check_transition(self.model.find(key), partition)
        self._stale = True  # until everything is known to be written
        try:
            written = await transactions.write_changes(self._session, self.elected, self.model, changes)
        except Conflict as error:
            logger.warning("a later controller has written: %s", error)
            self.resign()
            raise NotController("another broker is the controller (NOT_CONTROLLER)") from error
        self.model.apply(written)
        self._stale = False
        self._handover.unconfirmed.difference_update(written)
        self._queue_for_all(written)
        _log(written)
        return refused

    def _queue_for_all(self, keys: Collection[TopicPartition]) -> None:
        for channel in self._channels.values():
            channel.queue(keys)

    async def propagated(self, timeout_s: float) -> None:
        """Return when every reachable broker has acknowledged all changes so far, or after `timeout_s`."""
        reached = [
            channel.propagated()
            for each, channel in self._channels.items()
            if each not in self.model.unreachable
        ]
        try:
            async with asyncio.timeout(timeout_s):
                await asyncio.gather(*reached)
        except TimeoutError:
            logger.info("not every broker has acknowledged the change within %g s", timeout_s)

    # -- requests ------------------------------------------------------------------------------

    async def change(self, decide: Callable[[ClusterModel], Changes]) -> Changes:
        """Write the changes that `decide` returns for the current model; KafkaError if one is refused."""
        async with self._lock:
            if self._stale:
                await self._read()
            changes = decide(self.model)
            refused = await self._write(changes)
        if refused:
            key = min(refused)
            raise LeaderNotSteppedDown(
                f"{key}: the leader, broker {self.model.find(key).leader}, has not stepped down"
            )
        moving = [
            key for key, partition in self.model.select(changes) if partition.adding or partition.removing
        ]
        if moving:
            self._settle_soon(moving)
        return changes

    async def settle(self) -> None:
        """Settle all partitions now."""
        async with self._lock:
            await self._settle()
        self._queue_for_all(())

    async def balance(self, tolerated_percent: int) -> None:
        """Elect the preferred leaders of brokers that lead too few of the partitions that prefer them."""
        async with self._lock:
            if self._stale:
                await self._read()
            changes: Changes = {}
            by_preferred: dict[int, list[TopicPartition]] = {}
            for key, partition in self.model.items():
                by_preferred.setdefault(partition.replicas[0], []).append(key)
            astray = set(self.model.unbalanced())
            for keys in by_preferred.values():
                mine = astray.intersection(keys)
                if 100 * len(mine) > tolerated_percent * len(keys):
                    for key in sorted(mine):
                        changes |= self.model.prefer(key)
            await self._write(changes)

    async def raise_replicas(self, name: str, count: int) -> None:
        """Raise the replication factor of a topic to `count`, on new racks and nodes where possible."""
        loads = Counter(each for _, partition in self.model.items() for each in partition.replicas)

        def decide(cluster: ClusterModel) -> Changes:
            changes: Changes = {}
            brokers, able = cluster.locations, cluster.live - cluster.shutting_down
            for index, partition in cluster.topics[name].partitions.items():
                had = len(partition.replicas)
                if had < count and not partition.adding and not partition.removing:
                    replicas = extended(partition.replicas, count, brokers, candidates=able, loads=loads)
                    if len(replicas) == count:
                        loads.update(replicas[had:])
                        changes |= cluster.reassign(TopicPartition(name, index), replicas)
            return changes

        if name in self.model.topics:
            await self.change(decide)

    async def controlled_shutdown(self, broker_id: int, epoch: int) -> bool:
        """Have others lead what a broker leads; True when it leads nothing that another replica could."""
        member = self.model.members.get(broker_id)
        if member is None or member.epoch != epoch:
            raise StaleBrokerEpoch(f"broker {broker_id} is not registered with epoch {epoch}")
        self.model.shutting_down.add(broker_id)
        await self.settle()
        able = self.model.live - self.model.shutting_down
        return not any(
            able.intersection((*self.model.find(key).isr, *self.model.find(key).elr))
            for key in self.model.led_by(broker_id)
        )

    async def create_topic(self, topic: TopicAssignment, configs: Mapping[str, str]) -> None:
        """Write a new topic, and send it to the brokers; TopicAlreadyExists if there is one of this name."""
        config = Config(kind="topics", name=topic.topic, values=configs)
        partitions = self._first_states(topic.replicas, configs)
        async with self._writing():
            states = self._states(topic.topic, partitions)
            await transactions.create_topic(self._session, self.elected, topic, config, states)
            self.model.topics[topic.topic] = TopicModel(
                topic_id=topic.topic_id, version=0, partitions=partitions, configs=configs
            )
            self._send_new(topic.topic, partitions)

    async def add_partitions(
        self, topic: TopicAssignment, version: int, added: Mapping[int, Sequence[int]]
    ) -> None:
        """Write `topic`, which has the partitions `added` in addition to the assignment at `version`."""
        async with self._writing():
            model = self.model.topics.get(topic.topic)
            if model is None:
                raise UnknownTopicOrPartition(f"topic {topic.topic!r} does not exist any more")
            partitions = self._first_states(added, model.configs)
            states = self._states(topic.topic, partitions)
            await transactions.add_partitions(self._session, self.elected, topic, version, states)
            model.version = version + 1
            model.partitions.update(partitions)
            self._send_new(topic.topic, partitions)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic that is marked for deletion: the mark keeps it from being read again."""
        async with self._writing():
            topic = self.model.topics.pop(name, None)
            if topic is not None:
                self.model.removed[name] = topic.topic_id
                self._queue_for_all([TopicPartition(name, index) for index in topic.partitions])
        await transactions.delete_topic(self._session, self.elected, name)

    def _first_states(
        self, replicas: Mapping[int, Sequence[int]], configs: Mapping[str, str]
    ) -> dict[int, Partition]:
        rules = self._rules(configs)
        return {index: first_state(tuple(members), rules) for index, members in replicas.items()}

    def _states(self, name: str, partitions: Mapping[int, Partition]) -> list[PartitionState]:
        return [
            state_of(TopicPartition(name, index), partition, self.epoch, self.model.members)
            for index, partition in partitions.items()
        ]

    def _send_new(self, name: str, indexes: Iterable[int]) -> None:
        keys = [TopicPartition(name, index) for index in indexes]
        self._queue_for_all(keys)
        self._settle_soon(keys)

    def configure_topic(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply the changed configs of a topic: they may allow another replica to lead."""
        topic = self.model.topics.get(name)
        if topic is None:
            return
        rules = self._rules(configs)
        topic.configs = configs
        topic.partitions = {
            index: replace(
                partition,
                min_insync_replicas=rules.min_insync_replicas,
                unclean_allowed=rules.unclean_allowed,
            )
            for index, partition in topic.partitions.items()
        }
        self._settle_soon([TopicPartition(name, index) for index in topic.partitions])


def _log(written: Changes) -> None:
    for key, partition in list(written.items())[:_LOGGED]:
        logger.info(
            "%s: leader %d, leader epoch %d, ISR %s%s",
            key,
            partition.leader,
            partition.leader_epoch,
            list(partition.isr),
            "" if partition.leader != NO_LEADER else ": no replica can lead",
        )
    if len(written) > _LOGGED:
        logger.info("%d more partitions were written", len(written) - _LOGGED)
