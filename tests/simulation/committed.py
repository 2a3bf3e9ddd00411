"""Readers of the bank: they get records and offsets of committed transactions only."""

import asyncio

from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.fetch import PartitionData
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from simulation.bank import OFFSETS, Bank
from simulation.client import PATIENCE_S, Client
from simulation.ledger import Ledger
from simulation.log import Batch
from simulation.network import Network
from simulation.reader import Reader
from simulation.world import World

_OFFSET_FETCH = 9


class CommittedReader(Reader):
    """Reads one partition as a read_committed consumer does, from its beginning, by any replica."""

    isolation_level = 1

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        brokers: list[str],
        id_: TopicPartition,
        *,
        ledger: Ledger,
        bank: Bank,
    ) -> None:
        self._seen = bank.read.setdefault(id_, set())
        super().__init__(world, network, name, brokers, id_, ledger=ledger)

    def _take(self, broker: str, data: PartitionData) -> None:
        if data.error_code == ErrorCode.NONE:
            self._seen |= _without_aborted(data)
        super()._take(broker, data)


def _without_aborted(data: PartitionData) -> set[int]:
    """The values that a consumer hands out of what it fetched."""
    batches: tuple[Batch, ...] = data.records or ()  # type: ignore[assignment]
    waiting = sorted((each.first_offset, each.producer_id) for each in data.aborted_transactions or ())
    aborted: set[int] = set()
    found = set()
    for batch in batches:
        while waiting and waiting[0][0] <= batch.base_offset:
            aborted.add(waiting.pop(0)[1])
        if batch.marker is not None:
            aborted.discard(batch.producer_id)
        elif batch.is_transactional and batch.producer_id not in aborted:
            found.add(batch.value)
    return found


class OffsetReader(Client):
    """Asks for the committed offset of one group, as its next member would."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        brokers: list[str],
        id_: TopicPartition,
        *,
        group: str,
        bank: Bank,
    ) -> None:
        super().__init__(world, network, name, brokers, OFFSETS)
        self._of = id_
        self._group = group
        self._bank = bank
        self.process.run(self._work())

    async def _work(self) -> None:
        while True:
            broker = await self.leader()
            try:
                peer = await self.connection(broker)
                answer = await peer.ask(self._request(), _OFFSET_FETCH, timeout_s=PATIENCE_S)
            except PeerGone:
                continue
            self._take(answer.groups[0])
            await asyncio.sleep(self.world.random.random() * 0.5)

    def _request(self) -> OffsetFetchRequest:
        topic = OffsetFetchRequestTopics(name=self._of.topic, partition_indexes=[self._of.partition])
        return OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=self._group, topics=[topic])],
            require_stable=self.world.random.random() < 0.5,
        )

    def _take(self, group: OffsetFetchResponseGroup) -> None:
        if group.error_code or group.topics[0].partitions[0].error_code:
            return  # the coordinator has moved, or a transaction is about to change the offset
        offset = group.topics[0].partitions[0].committed_offset
        self._bank.last_offsets[self._group] = offset
        if offset >= 0:
            self._bank.read.setdefault(OFFSETS, set()).add(offset)
