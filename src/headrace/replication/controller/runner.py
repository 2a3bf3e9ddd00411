"""The controller: it handles one event at a time, writes what the model decides, and updates the brokers."""

import asyncio
import logging
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from itertools import islice
from typing import Any

from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import BrokerRegistration, Config, PartitionState, TopicAssignment
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import (
    LeaderNotSteppedDown,
    NotController,
    StaleBrokerEpoch,
    UnknownTopicOrPartition,
)
from headrace.protocol.message import Message
from headrace.protocol.peers import Link, PeerGone
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.replication.controller import transactions
from headrace.replication.controller.channel import Channel
from headrace.replication.controller.handover import Handover
from headrace.replication.controller.in_doubt_waits import InDoubtWaits
from headrace.replication.controller.model import Changes, ClusterModel, Member, Survey, TopicModel
from headrace.replication.controller.pauses import Pauses
from headrace.replication.controller.placement import extended
from headrace.replication.controller.store import Rules, first_state, member_of, read_topics
from headrace.replication.controller.transactions import ElectedEpoch, state_of
from headrace.replication.controller.updates import Batch, Updates
from headrace.replication.election import NO_LEADER, Partition, Progress, check_transition

_SURVEY_VERSIONS, _SURVEY_TIMEOUT_S = range(4, 8), 0.5
_DEBUGGING_CONSUMER = -2  # as a replica id: the broker answers for its own log, whoever leads
_LATEST = -1
_RETRY_S = 0.2
UPDATE_WAIT_S = 5.0  # how long a change waits for every broker to acknowledge it
_CONSENT_RETRY_S = 1.0  # after which a leader that has not stepped down is asked again
_WRITTEN_TOGETHER = 1000  # changed partitions
_APPLIED_TOGETHER = 256
_SURVEYED_TOGETHER = 2000  # partitions of one ListOffsets
_LOGGED = 5  # partitions of one write that are logged, each in a line of its own

Registrations = Mapping[int, BrokerRegistration]
logger = logging.getLogger(__name__)


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
        in_doubt_wait_s: Callable[[], float],
    ) -> None:
        """`in_doubt_wait_s` returns how long to wait for other replicas if the live ones are in doubt."""
        self.model = ClusterModel()
        self.elected = elected
        self._session = session
        self._broker_id = broker_id
        self._rules = rules
        self._connect = connect
        self._on_resigned = on_resigned
        self._in_doubt_waits = InDoubtWaits(self.model, wait_s=in_doubt_wait_s, settle_soon=self._settle_soon)
        self._registrations: dict[int, BrokerRegistration] = {}
        self._channels: dict[int, Channel] = {}
        self._lock = asyncio.Lock()
        self._stale = True
        self._resigned = False
        self._settling: asyncio.Task[None] | None = None
        self._unsettled: set[TopicPartition] | None = set()  # what is to be settled; None: all
        self._changed_brokers: set[int] = set()  # whose partitions are to be settled
        self._handover = Handover(self.model, elected.epoch, self._channels)
        self._updates = Updates(self.model, controller_id=broker_id, controller_epoch=elected.epoch)
        self._configured: dict[str, Mapping[str, str]] | None = None  # since `_read` has begun

    @property
    def epoch(self) -> int:
        return self.elected.epoch

    async def begin(self, registrations: Registrations, epochs: Mapping[int, int]) -> None:
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
        configured: dict[str, Mapping[str, str]] = {}
        self._configured = configured
        try:
            topics = await read_topics(self._session, self.model.members, self._rules)
            for _ in self.model.load(topics):
                await asyncio.sleep(0)
        finally:
            self._configured = None
        for name, configs in configured.items():  # they may have changed after they were read
            self.model.use_rules(name, configs, self._rules(configs))
        for key in self._handover.unconfirmed:
            self.model.rewrite(key)
        self._updates.forget()
        for channel in self._channels.values():
            channel.queue_everything()
        self._stale = False

    async def _ensure_current(self) -> None:
        """Read all topics again if a write has failed, and settle them: its event may not be handled."""
        if self._stale:
            self._settle_soon(None)
            await self._read()

    @asynccontextmanager
    async def _writing(self) -> AsyncIterator[None]:
        """Hold the lock while topics are written; if that fails, read again what was written."""
        async with self._lock:
            if self._resigned:
                raise NotController("this broker has resigned as the controller (NOT_CONTROLLER)")
            await self._ensure_current()
            self._stale = True
            try:
                yield
            except BaseException:
                self._settle_soon(None)
                raise
            self._stale = False

    async def brokers_changed(self, registrations: Registrations, epochs: Mapping[int, int]) -> None:
        """Handle brokers that came, left, or restarted; a restarted one leads nothing until elected."""
        async with self._lock:
            try:
                before = dict(self.model.members)
                back = {
                    each for each, epoch in epochs.items() if each in before and before[each].epoch != epoch
                }
                gone = sorted((before.keys() - registrations.keys()) | back)
                self._changed_brokers.update(gone)  # until their partitions are settled, perhaps by a retry
                for broker_id in gone:
                    del self.model.members[broker_id]
                    self.model.unreachable.discard(broker_id)
                    self.model.shutting_down.discard(broker_id)
                    channel = self._channels.pop(broker_id, None)
                    if channel is not None:
                        channel.close()
                    await asyncio.sleep(0)
                self._updates.use_brokers(self._registrations)
                await self._settle(await self._partitions_on(sorted(self._changed_brokers)))
                self._changed_brokers.clear()
                await asyncio.sleep(0)
                new = self._take_members(registrations, epochs)
                self._changed_brokers.update(member.broker_id for member in new)
                for member in new:
                    for batch in _batched(self.model.returned(member), _WRITTEN_TOGETHER):
                        await self._write(batch)
                await self._settle(await self._partitions_on(sorted(self._changed_brokers)))
                self._changed_brokers.clear()
            except BaseException:
                self._stale = True  # the model may not have what was written
                raise
        self._open_channels()
        self._queue_for_all(())

    async def _partitions_on(self, broker_ids: Collection[int]) -> Collection[TopicPartition]:
        """Return the partitions with a replica on any of these brokers, first those that the brokers lead."""
        keys: dict[TopicPartition, None] = {}
        for find in (self.model.led_by, self.model.with_replica_on):
            for broker_id in broker_ids:
                keys.update(dict.fromkeys(find(broker_id)))
                await asyncio.sleep(0)
        return keys

    def _take_members(self, registrations: Registrations, epochs: Mapping[int, int]) -> list[Member]:
        self._registrations = dict(registrations)
        members = {each: member_of(found, epochs[each]) for each, found in registrations.items()}
        new = [member for each, member in members.items() if self.model.members.get(each) != member]
        self.model.members = members
        self._updates.use_brokers(registrations)
        return new

    def _open_channels(self) -> None:
        for broker_id in self.model.members.keys() - self._channels.keys():
            self._channels[broker_id] = Channel(
                broker_id,
                connect=lambda each: self._connect(each, self._registrations[each]),
                updates=self._updates,
                on_reachable=self._reachable,
                on_replaced=self.resign,
            )

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

    def _settle_soon(self, keys: Collection[TopicPartition] | None) -> None:
        """Settle these partitions, or all, in the background."""
        if keys is None or self._unsettled is None:
            self._unsettled = None
        else:
            self._unsettled.update(keys)
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle_until_done())

    async def _settle_until_done(self) -> None:
        while (self._unsettled is None or self._unsettled) and not self._resigned:
            keys, self._unsettled = self._unsettled, set()
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
        self._unsettled = None
        await asyncio.sleep(_RETRY_S)

    async def _settle(self, keys: Collection[TopicPartition] | None = None) -> None:
        if self._stale:
            await self._read()
            keys = None
        survey = await self._survey(keys)
        changes: Changes = {}
        refused: set[TopicPartition] = set()
        for some in self.model.parts(keys):
            changes |= self.model.settle(survey, some)
            if len(changes) >= _WRITTEN_TOGETHER:  # brokers learn of these while others are written
                refused |= await self._write_settled(changes)
                changes = {}
            await asyncio.sleep(0)  # lets requests run in between
        refused |= await self._write_settled(changes)
        if refused:
            asyncio.get_running_loop().call_later(_CONSENT_RETRY_S, self._settle_soon, refused)
        for some in self.model.parts(keys):
            self._in_doubt_waits.look(some, survey)
            await asyncio.sleep(0)

    async def _write_settled(self, changes: Changes) -> set[TopicPartition]:
        unclean = self.model.unclean_elections(changes)
        if len(unclean) > _LOGGED:
            logger.error("unclean elections of %d partitions; the first of them:", len(unclean))
        for key in unclean[:_LOGGED]:
            before = self.model.find(key)
            logger.error(
                "%s: unclean election of broker %d, %s: records may be lost",
                key,
                changes[key].leader,
                f"which has the most records; brokers {list(before.in_doubt)} of ISR and ELR "
                f"{[*before.isr, *before.elr]} may have lost some in a crash"
                if before.in_doubt
                else "which was neither in the ISR nor in the ELR",
            )
        await asyncio.sleep(0)
        return await self._write(changes)

    async def _survey(self, keys: Collection[TopicPartition] | None) -> Survey:
        """Ask the candidates for their log end offsets; those that time out are ranked by replica order."""
        by_broker: dict[int, list[TopicPartition]] = {}
        for some in self.model.parts(keys):
            for key, candidates in self.model.to_survey(some).items():
                for broker_id in candidates:
                    by_broker.setdefault(broker_id, []).append(key)
            await asyncio.sleep(0)
        questions = [
            (broker_id, asked[first : first + _SURVEYED_TOGETHER])
            for broker_id, asked in by_broker.items()
            for first in range(0, len(asked), _SURVEYED_TOGETHER)
        ]
        answers = await asyncio.gather(*(self._ask_progress(*question) for question in questions))
        found: dict[TopicPartition, dict[int, Progress]] = {}
        for (broker_id, _), progress in zip(questions, answers, strict=True):
            for key, reached in progress.items():
                found.setdefault(key, {})[broker_id] = reached
            await asyncio.sleep(0)
        return found

    async def _ask_progress(
        self, broker_id: int, keys: Sequence[TopicPartition]
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
                response = await self._ask(broker_id, request, _SURVEY_VERSIONS)
        except (PeerGone, TimeoutError):
            return {}
        return {
            TopicPartition(topic.name, entry.partition_index): Progress(entry.leader_epoch, entry.offset)
            for topic in response.topics
            for entry in topic.partitions
            if entry.error_code == ErrorCode.NONE
        }

    async def _ask(self, broker_id: int, request: Message, versions: range) -> Any:
        """Return a broker's response, over its channel or, before that is open, over a new connection."""
        channel = self._channels.get(broker_id)
        if channel is not None and channel.is_open:
            return await channel.ask(request, versions)
        link = await self._connect(broker_id, self._registrations[broker_id])
        try:
            return await link.ask(request, versions)
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
        pauses = Pauses()
        for key, partition in changes.items():
            await pauses.next()
            check_transition(self.model.find(key), partition)
        self._stale = True  # until everything is known to be written
        try:
            written = await transactions.write_changes(self._session, self.elected, self.model, changes)
        except Conflict as error:
            logger.warning("a later controller has written: %s", error)
            self.resign()
            raise NotController("another broker is the controller (NOT_CONTROLLER)") from error
        for some in _batched(written, _APPLIED_TOGETHER):
            self.model.apply(some)
            await asyncio.sleep(0)
        self._stale = False
        self._handover.unconfirmed.difference_update(written)
        self._queue_for_all(tuple(written))
        for key, partition in list(written.items())[:_LOGGED]:
            logger.info(
                "%s: leader %d, leader epoch %d, ISR %s%s%s",
                key,
                partition.leader,
                partition.leader_epoch,
                list(partition.isr),
                "" if partition.leader != NO_LEADER else ": no replica can lead",
                f", brokers {list(partition.in_doubt)} may have lost records" if partition.in_doubt else "",
            )
        if len(written) > _LOGGED:
            logger.info("%d more partitions were written", len(written) - _LOGGED)
        return refused

    def _queue_for_all(self, batch: Batch) -> None:
        for channel in self._channels.values():
            channel.queue(batch)

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

    async def change(self, decide: Callable[[ClusterModel], Changes]) -> Changes:
        """Write the changes that `decide` returns for the current model; KafkaError if one is refused."""
        async with self._lock:
            await self._ensure_current()
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

    async def balance(self, tolerated_percent: int) -> None:
        """Elect the preferred leaders of brokers that lead too few of the partitions that prefer them."""
        async with self._lock:
            await self._ensure_current()
            preferred: Counter[int] = Counter()
            astray: dict[int, list[TopicPartition]] = {}
            for some in self.model.parts(None):
                preferred.update(partition.replicas[0] for _, partition in self.model.select(some))
                for key in self.model.unbalanced(some):
                    astray.setdefault(self.model.find(key).replicas[0], []).append(key)
                await asyncio.sleep(0)
            for broker_id, keys in astray.items():
                if 100 * len(keys) > tolerated_percent * preferred[broker_id]:
                    for first in range(0, len(keys), _WRITTEN_TOGETHER):
                        changes: Changes = {}
                        for key in self.model.unbalanced(keys[first : first + _WRITTEN_TOGETHER]):
                            changes |= self.model.prefer(key)  # its preferred replica can still lead
                        await self._write(changes)

    async def raise_replicas(self, name: str, count: int) -> None:
        """Raise the replication factor of a topic to `count`, on new racks and nodes where possible."""
        topic = self.model.topics.get(name)
        if topic is None or all(len(each.replicas) >= count for each in topic.partitions.values()):
            return
        loads = Counter({each: len(self.model.with_replica_on(each)) for each in self.model.live})

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

        await self.change(decide)

    async def controlled_shutdown(self, broker_id: int, epoch: int) -> bool:
        """Have others lead what a broker leads; True when it leads nothing that another replica could."""
        async with self._lock:
            member = self.model.members.get(broker_id)
            if member is None or member.epoch != epoch:  # perhaps it was removed while this waited
                raise StaleBrokerEpoch(f"broker {broker_id} is not registered with epoch {epoch}")
            self.model.shutting_down.add(broker_id)
            await self._settle(await self._partitions_on([broker_id]))
        self._queue_for_all(())
        able = self.model.live - self.model.shutting_down
        return not any(
            able.intersection((*self.model.find(key).isr, *self.model.find(key).elr))
            for key in self.model.led_by(broker_id)
        )

    async def create_topic(self, topic: TopicAssignment, configs: Mapping[str, str]) -> None:
        """Write a new topic, and send it to the brokers; TopicAlreadyExists if there is one of this name."""
        config = Config(kind="topics", name=topic.topic, values=configs)
        partitions = await self._first_states(topic.replicas, configs)
        async with self._writing():
            states = self._states(topic.topic, partitions)
            await transactions.create_topic(self._session, self.elected, topic, config, states)
            self.model.add_topic(
                topic.topic,
                TopicModel(topic_id=topic.topic_id, version=0, partitions=partitions, configs=configs),
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
            partitions = await self._first_states(added, model.configs)
            states = self._states(topic.topic, partitions)
            await transactions.add_partitions(self._session, self.elected, topic, version, states)
            self.model.add_partitions(topic.topic, partitions, version + 1)
            self._send_new(topic.topic, partitions)

    async def remove_topic(self, name: str) -> None:
        """Remove a topic that is marked for deletion, and send that to the brokers; it is not read again."""
        async with self._writing():
            removed = self.model.remove_topic(name)
            if removed:
                self._queue_for_all(removed)

    async def delete_znodes(self, name: str) -> None:
        await transactions.delete_topic(self._session, self.elected, name)

    async def _first_states(
        self, replicas: Mapping[int, Sequence[int]], configs: Mapping[str, str]
    ) -> dict[int, Partition]:
        rules = self._rules(configs)
        pauses = Pauses()
        states = {}
        for index, members in replicas.items():
            await pauses.next()
            states[index] = first_state(tuple(members), rules)
        return states

    def _states(self, name: str, partitions: Mapping[int, Partition]) -> Iterator[PartitionState]:
        return (
            state_of(TopicPartition(name, index), partition, self.epoch, self.model.members)
            for index, partition in partitions.items()
        )

    def _send_new(self, name: str, indexes: Iterable[int]) -> None:
        keys = [TopicPartition(name, index) for index in indexes]
        self._queue_for_all(keys)
        self._settle_soon(keys)

    def configure_topic(self, name: str, configs: Mapping[str, str]) -> None:
        """Apply the changed configs of a topic: they may allow another replica to lead."""
        if self._configured is not None:
            self._configured[name] = configs
        keys = self.model.use_rules(name, configs, self._rules(configs))
        if keys:
            self._settle_soon(keys)


def _batched(changes: Changes, size: int) -> Iterator[Changes]:
    left = iter(changes.items())
    while batch := dict(islice(left, size)):
        yield batch
