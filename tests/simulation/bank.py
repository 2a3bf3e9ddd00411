"""Transactions in the simulated cluster: workers that write several partitions at once, and what must hold.

Each transaction moves a value into every partition. Whatever happens to brokers and workers: the values of a
transaction are visible to read_committed readers in all partitions or in none, as its worker was told; no
transaction stays open; and nothing is visible that a reader was told is aborted. Several workers may have
the same transactional id: each fences the others, and goes on as a new instance when it is fenced.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.controller.channel import PeerGone
from headrace.coordinator.decision import Producer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.end_txn import EndTxnRequest
from headrace.protocol.schema.fetch import PartitionData
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from simulation.client import PATIENCE_S, Client
from simulation.ledger import Ledger
from simulation.log import Batch
from simulation.network import Network
from simulation.reader import Reader
from simulation.world import Violation, World

STATES = TopicPartition("__transaction_state", 0)
TIMEOUT_MS = 3000  # of a transaction
_PRODUCE, _INIT, _END = 12, 5, 5  # versions: transaction version 2


class _GoneError(Exception):
    """This instance of the producer cannot go on: it was fenced, or its transaction was aborted."""


@dataclass(slots=True)
class Transfer:
    """One transaction, and what its worker knows of it."""

    values: dict[TopicPartition, int]
    wants_commit: bool
    asked: bool = False  # EndTxn was sent, so that the outcome may be what was wanted
    outcome: bool | None = None  # as the worker was told
    producer: Producer = field(default=Producer(-1, -1))


class Bank:
    """All transactions of a story."""

    def __init__(self) -> None:
        self.transfers: list[Transfer] = []
        self.read: dict[TopicPartition, set[int]] = {}  # what read_committed readers got

    def check(self, logs: dict[TopicPartition, Sequence[Batch]]) -> None:
        """Compare what is in the logs, when nothing happens any more, with what everybody was told."""
        visible: dict[TopicPartition, set[int]] = {}
        for id_, batches in logs.items():
            visible[id_] = _visible(id_, batches)
        for id_, values in self.read.items():
            for value in values - visible[id_]:
                raise Violation(f"{id_}: a read_committed reader got {value}, which is not committed")
        for transfer in self.transfers:
            seen = {id_ for id_, value in transfer.values.items() if value in visible[id_]}
            if seen and len(seen) < len(transfer.values):
                raise Violation(f"{transfer} is torn: it is visible in {sorted(seen)} only")
            if transfer.outcome is True and not seen:
                raise Violation(f"{transfer} was acknowledged as committed, and is not visible")
            if seen and (transfer.outcome is False or not (transfer.asked and transfer.wants_commit)):
                raise Violation(f"{transfer} is visible, and was not committed")


def _visible(id_: TopicPartition, batches: Sequence[Batch]) -> set[int]:
    open_: dict[int, list[int]] = {}
    found: set[int] = set()
    for batch in batches:
        if batch.marker is not None:
            ended = open_.pop(batch.producer_id, [])
            if batch.marker.commit:
                found.update(ended)
        elif batch.is_transactional:
            open_.setdefault(batch.producer_id, []).append(batch.value)
    if open_:
        raise Violation(f"{id_}: transactions of producers {sorted(open_)} have no marker")
    return found


class Worker(Client):
    """Writes one transaction after the other, until it is told to stop."""

    def __init__(
        self,
        world: World,
        network: Network,
        name: str,
        brokers: list[str],
        ids: list[TopicPartition],
        *,
        transactional_id: str,
        values: Iterator[int],
        bank: Bank,
    ) -> None:
        super().__init__(world, network, name, brokers, STATES)
        self.is_stopped = False
        self.is_done = False
        self.finished = 0
        self._ids = ids
        self._transactional_id = transactional_id
        self._values = values
        self._bank = bank
        self._sequences: dict[TopicPartition, int] = {}
        self._producer = Producer(-1, -1)
        self.process.run(self._work())

    async def _work(self) -> None:
        while not self.is_stopped:
            try:
                await self._init()
                while not self.is_stopped:
                    await self._transfer()
                    await asyncio.sleep(self.world.random.random() * 0.5)
            except _GoneError as why:
                self.world.say(self.process.name, "goes on as a new instance: %s", why)
                await asyncio.sleep(self.world.random.random() * 2)
        self.is_done = True

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        while not self.is_stopped:
            answer = await self._ask(STATES, request, _INIT)
            if answer is not None and not answer.error_code:
                self._producer = Producer(answer.producer_id, answer.producer_epoch)
                self._sequences.clear()
                return
            await self._pause()

    async def _transfer(self) -> None:
        ids = self.world.random.sample(self._ids, self.world.random.randint(1, len(self._ids)))
        transfer = Transfer(
            {id_: next(self._values) for id_ in ids},
            wants_commit=self.world.random.random() < 0.7,
            producer=self._producer,
        )
        self._bank.transfers.append(transfer)
        for id_, value in transfer.values.items():
            await self._write(id_, value)
        if self.world.random.random() < 0.1:
            await asyncio.sleep(TIMEOUT_MS / 1000 * self.world.random.random() * 2)
        await self._end(transfer)
        self.finished += 1

    async def _write(self, id_: TopicPartition, value: int) -> None:
        sequence = self._sequences.get(id_, 0)
        batch = Batch(value, *self._producer, sequence, is_transactional=True)
        data = PartitionProduceData(index=id_.partition, records=(batch,))  # type: ignore[arg-type]
        request = ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout_ms=int(PATIENCE_S * 800),
            topic_data=[TopicProduceData(name=id_.topic, partition_data=[data])],
        )
        while True:
            answer = await self._ask(id_, request, _PRODUCE)
            if answer is not None:
                code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
                if code is ErrorCode.NONE:
                    self._sequences[id_] = sequence + 1
                    return
                if not code.retriable:
                    raise _GoneError(f"{code.name} for {value}")
            await self._pause()

    async def _end(self, transfer: Transfer) -> None:
        producer = self._producer
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=transfer.wants_commit,
        )
        transfer.asked = True
        while True:
            answer = await self._ask(STATES, request, _END)
            if answer is not None:
                code = ErrorCode(answer.error_code)
                if code is ErrorCode.NONE:
                    transfer.outcome = transfer.wants_commit
                    self._producer = Producer(answer.producer_id, answer.producer_epoch)
                    self._sequences.clear()
                    return
                if not code.retriable and code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise _GoneError(f"{code.name} at the end")
            await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(0.02 + self.world.random.random() * 0.2)

    async def _ask(self, id_: TopicPartition, request: Any, version: int) -> Any:
        """Ask the leader of a partition; None if there is no answer. It may have been handled, too."""
        self.id = id_
        leader = await self.leader()
        try:
            peer = await self.connection(leader)
            return await peer.ask(request, version, timeout_s=PATIENCE_S)
        except PeerGone:
            return None


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
