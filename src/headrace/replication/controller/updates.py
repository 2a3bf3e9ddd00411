"""The UpdateMetadata requests of the controller: some partitions, or the whole state of the cluster.

Brokers get the same requests, except for the broker epoch. A request is composed and encoded once, and
shared by all brokers that need it before the partitions in it change.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.coordination.znodes import BrokerRegistration
from headrace.protocol.between_brokers import update_metadata
from headrace.protocol.ids import TopicPartition
from headrace.protocol.primitives import STEP
from headrace.replication.controller.model import ClusterModel
from headrace.replication.controller.pauses import Pauses, with_pauses

VERSIONS: Final = range(8, 10)
PARTITIONS_PER_PART: Final = 10_000  # of the whole state; a broker refuses a message with far more
_SHARED: Final = 64  # requests that are kept for other brokers

Batch = Sequence[TopicPartition]
"""Partitions that have changed together, the same object for every broker."""


class TopicForgotten(Exception):
    """A topic that an update is about was deleted long ago: only the whole state says that it is gone."""


class _Content(NamedTuple):
    """What a request is about: partitions by topic, or whole topics (None)."""

    type: int
    topics: Mapping[str, Collection[int] | None]
    part: int = update_metadata.NOT_A_PART
    is_last_part: bool = False


@dataclass(slots=True)
class _Shared:
    """A request that was composed, and what it depends on."""

    content: _Content
    batches: Sequence[Batch]  # keeps their identities, which are the key
    revision: int  # of the model, at which the request is known to be current
    revisions: list[tuple[bytes, int] | None]  # of its topics
    states: update_metadata.SharedTopicStates


class Updates:
    def __init__(
        self,
        model: ClusterModel,
        *,
        controller_id: int,
        controller_epoch: int,
        partitions_per_part: int = PARTITIONS_PER_PART,
    ) -> None:
        self._model = model
        self._controller_id = controller_id
        self._controller_epoch = controller_epoch
        self._partitions_per_part = partitions_per_part
        self._brokers: list[update_metadata.UpdateMetadataBroker] = []  # replaced when it changes
        self._shared: OrderedDict[Hashable, _Shared] = OrderedDict()
        self._composing = asyncio.Lock()

    def use_brokers(self, registrations: Mapping[int, BrokerRegistration]) -> None:
        """Send these brokers, as far as they are live, from now on."""
        members = self._model.members
        self._brokers = [
            update_metadata.UpdateMetadataBroker(
                id=broker_id,
                endpoints=[
                    update_metadata.UpdateMetadataEndpoint(
                        port=endpoint.port,
                        host=endpoint.host,
                        listener=endpoint.name,
                        security_protocol=endpoint.security_protocol,
                    )
                    for endpoint in registration.endpoints
                ],
                rack=registration.rack,
                broker_epoch=members[broker_id].epoch,
                node=registration.node,
            )
            for broker_id, registration in sorted(registrations.items())
            if broker_id in members
        ]
        self._shared.clear()

    def forget(self) -> None:
        """Share nothing that was composed before the model was read again."""
        self._shared.clear()

    async def some(self, to_broker: int, batches: Sequence[Batch]) -> update_metadata.UpdateMetadataRequest:
        """Return a request with the current state of these partitions, or raise TopicForgotten."""
        return await self._compose(to_broker, tuple(map(id, batches)), None, batches)

    async def everything(
        self, to_broker: int, *, in_parts: bool = True
    ) -> AsyncIterator[update_metadata.UpdateMetadataRequest]:
        """Iterate over the requests with the whole state: one, or several parts if the broker knows parts."""
        parts = list(self._parts()) if in_parts else [list(self._model.topics)]
        for number, names in enumerate(parts):
            content = _Content(
                update_metadata.INCREMENTAL, dict.fromkeys(names), number, number == len(parts) - 1
            )
            if len(parts) == 1:
                content = _Content(update_metadata.FULL, content.topics)
            yield await self._compose(to_broker, (tuple(names), number, len(parts)), content)

    def _parts(self) -> Iterator[list[str]]:
        """Split the names of all topics: a topic is never split, clients would see too few partitions."""
        names: list[str] = []
        partitions = 0
        for name, topic in self._model.topics.items():
            if names and partitions + len(topic.partitions) > self._partitions_per_part:
                yield names
                names, partitions = [], 0
            names.append(name)
            partitions += len(topic.partitions)
        yield names

    async def _compose(
        self, to_broker: int, key: Hashable, content: _Content | None, batches: Sequence[Batch] = ()
    ) -> update_metadata.UpdateMetadataRequest:
        async with self._composing:
            found = self._shared.get(key)
            while found is None or not self._is_current(found):
                brokers = self._brokers
                composed = await self._composed(content or _content_of(batches), batches)
                if brokers is self._brokers:  # otherwise it has the brokers of before
                    found = self._shared[key] = composed
                    while len(self._shared) > _SHARED:
                        self._shared.popitem(last=False)
                    break
            return self._request(found.content, found.states, to_broker)

    def _is_current(self, shared: _Shared) -> bool:
        if shared.revision != self._model.revision:
            if shared.revisions != self._revisions(shared.content.topics):
                return False
            shared.revision = self._model.revision
        return True

    def _revisions(self, names: Collection[str]) -> list[tuple[bytes, int] | None]:
        topics = self._model.topics
        return [
            None if (topic := topics.get(name)) is None else (topic.topic_id, topic.revision)
            for name in names
        ]

    def _request(
        self, content: _Content, states: Sequence[update_metadata.UpdateMetadataTopicState], to_broker: int
    ) -> update_metadata.UpdateMetadataRequest:
        member = self._model.members.get(to_broker)
        return update_metadata.UpdateMetadataRequest(
            controller_id=self._controller_id,
            type=content.type,
            controller_epoch=self._controller_epoch,
            broker_epoch=-1 if member is None else member.epoch,
            topic_states=states,
            live_brokers=self._brokers,
            part=content.part,
            is_last_part=content.is_last_part,
        )

    async def _composed(self, content: _Content, batches: Sequence[Batch]) -> _Shared:
        revision, revisions = self._model.revision, self._revisions(content.topics)
        states = update_metadata.SharedTopicStates()
        pauses = Pauses()
        for name, indexes in content.topics.items():
            try:
                states.append(self._topic(name, indexes))
            except TopicForgotten:
                if indexes is not None:
                    raise
                continue  # the whole state says that a topic is gone by not naming it
            await pauses.next(1 + len(states[-1].partition_states))
        body = await with_pauses(
            self._request(content, list(states), -1).encode_in_slices(VERSIONS[-1]), elements=STEP
        )
        states.rest = update_metadata.after_broker_epoch(body)
        return _Shared(content, batches, revision, revisions, states)

    def _topic(self, name: str, indexes: Collection[int] | None) -> update_metadata.UpdateMetadataTopicState:
        topic = self._model.topics.get(name)
        if topic is None:
            topic_id = self._model.removed.get(name)
            if topic_id is None:
                raise TopicForgotten(f"topic {name} was deleted, and its id is not known any more")
            gone = update_metadata.UpdateMetadataPartitionState(  # one partition says it for the topic
                partition_index=0,
                controller_epoch=self._controller_epoch,
                leader=update_metadata.TOPIC_IS_GONE,
                leader_epoch=-1,
                isr=(),
                zk_version=-1,
                replicas=(),
                offline_replicas=(),
            )
            return update_metadata.UpdateMetadataTopicState(
                topic_name=name, topic_id=topic_id, partition_states=[gone]
            )
        live = self._model.members
        return update_metadata.UpdateMetadataTopicState(
            topic_name=name,
            topic_id=topic.topic_id,
            partition_states=[
                update_metadata.UpdateMetadataPartitionState(
                    partition_index=index,
                    controller_epoch=self._controller_epoch,
                    leader=partition.leader,
                    leader_epoch=partition.leader_epoch,
                    isr=partition.isr,
                    zk_version=partition.version,
                    replicas=partition.replicas,
                    offline_replicas=[replica for replica in partition.replicas if replica not in live],
                    eligible_leader_replicas=partition.elr,
                    adding_replicas=partition.adding,
                    removing_replicas=partition.removing,
                    last_known_leader=partition.last_leader,
                )
                for index in (topic.partitions if indexes is None else indexes)
                if (partition := topic.partitions.get(index)) is not None
            ],
            configs=[
                update_metadata.UpdateMetadataTopicConfig(name=name, value=value)
                for name, value in topic.configs.items()
            ],
        )


def _content_of(batches: Sequence[Batch]) -> _Content:
    topics: dict[str, dict[int, None]] = {}
    for batch in batches:
        for key in batch:
            topics.setdefault(key.topic, {})[key.partition] = None
    return _Content(update_metadata.INCREMENTAL, {name: sorted(topics[name]) for name in sorted(topics)})
