"""Workers of the bank: they write several partitions in one transaction, give up, crash, and are fenced.

Several workers may have the same transactional id: each fences the others, and goes on as a new instance when
it is fenced. Requests of a worker may also arrive late, on connections that it has forgotten.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from headrace.coordinators.decision import Producer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone
from headrace.protocol.schema.end_txn import EndTxnRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.protocol.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.security.listeners import Endpoint
from simulation.bank import OFFSETS, STATES, TIMEOUT_MS, Bank, Transfer
from simulation.client import PATIENCE_S, Client
from simulation.log import Batch
from simulation.network import Network
from simulation.peer import Peer
from simulation.world import World

_PRODUCE, _COMMIT_OFFSET, _INIT, _END = 12, 5, 5, 5  # versions: transaction version 2
_LATEST_S = 2.5  # a request arrives after this time at most: before the aftermath is over


class _GoneError(Exception):
    """This instance of the producer cannot go on: it is fenced, its transaction is aborted, or it crashes."""


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
        self._ids = [*ids, OFFSETS]
        self.transactional_id = transactional_id
        self._values = values
        self._bank = bank
        self._sequences: dict[TopicPartition, int] = {}
        self._producer = Producer(-1, -1)
        self._leaders: dict[TopicPartition, str] = {}
        self.process.run(self._work())

    def _happens(self, probability: float) -> bool:
        return self.world.random.random() < probability

    async def _work(self) -> None:
        while not self.is_stopped:
            try:
                await self._init()
                while not self.is_stopped:
                    await self._transfer()
                    await asyncio.sleep(self.world.random.random() * 0.05)
            except _GoneError as why:
                self.world.say(self.process.name, "goes on as a new instance: %s", why)
                await asyncio.sleep(self.world.random.random())
        self.is_done = True

    async def _init(self) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=TIMEOUT_MS
        )
        while not self.is_stopped:
            answer = await self._ask(STATES, request, _INIT)
            if answer is not None and not answer.error_code:
                self._continue_as(Producer(answer.producer_id, answer.producer_epoch))
                return
            await self._pause()

    def _continue_as(self, producer: Producer) -> None:
        if producer != self._producer:
            self._sequences.clear()
        self._producer = producer

    # -- a transaction -------------------------------------------------------------------------

    async def _transfer(self) -> None:
        ids = self.world.random.sample(self._ids, self.world.random.randint(1, len(self._ids)))
        transfer = Transfer(
            {id_: next(self._values) for id_ in ids}, wants_commit=self._happens(0.7), producer=self._producer
        )
        self._bank.transfers.append(transfer)
        is_late = self._happens(0.1)  # the last request, for which the worker does not wait
        for id_ in ids[:-1] if is_late else ids:
            await self._write(id_, transfer.values[id_])
        if is_late:
            transfer.wants_commit = False
            self._send_late(ids[-1], *self._request(ids[-1], transfer.values[ids[-1]]))
        if self._happens(0.1):
            await asyncio.sleep(TIMEOUT_MS / 1000 * self.world.random.random() * 2)
        await self._end(transfer)
        self.finished += 1

    async def _write(self, id_: TopicPartition, value: int) -> None:
        request, version = self._request(id_, value)
        while True:
            answer = await self._ask(id_, request, version)
            if answer is not None:
                code = _code(answer)
                if code is ErrorCode.NONE:
                    self._sequences[id_] = self._sequences.get(id_, 0) + 1
                    return
                if not _is_retriable(code):
                    raise _GoneError(f"{code.name} for {value}")
            await self._pause()

    def _request(self, id_: TopicPartition, value: int) -> tuple[Any, int]:
        """The request that writes `value`, and its version."""
        if id_ == OFFSETS:
            return self._offset_commit(value), _COMMIT_OFFSET
        batch = Batch(value, *self._producer, self._sequences.get(id_, 0), is_transactional=True)
        data = PartitionProduceData(index=id_.partition, records=(batch,))  # type: ignore[arg-type]
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=int(PATIENCE_S * 800),
            topic_data=[TopicProduceData(name=id_.topic, partition_data=[data])],
        )
        return request, _PRODUCE

    def _offset_commit(self, offset: int) -> TxnOffsetCommitRequest:
        id_ = self._ids[0]
        partition = TxnOffsetCommitRequestPartition(
            partition_index=id_.partition, committed_offset=offset, committed_metadata=""
        )
        return TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=self.transactional_id,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=id_.topic, partitions=[partition])],
        )

    async def _end(self, transfer: Transfer) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer.producer_id,
            producer_epoch=self._producer.epoch,
            committed=transfer.wants_commit,
        )
        transfer.asked = True
        while True:
            answer = await self._ask(STATES, request, _END)
            if answer is not None:
                code = ErrorCode(answer.error_code)
                if code is ErrorCode.NONE:
                    transfer.outcome = transfer.wants_commit
                    self._continue_as(Producer(answer.producer_id, answer.producer_epoch))
                    return
                if not _is_retriable(code):
                    raise _GoneError(f"{code.name} at the end")
            if self._happens(0.2):
                raise _GoneError("it crashes before it knows the outcome")
            await self._pause()

    # -- requests ------------------------------------------------------------------------------

    async def _pause(self) -> None:
        self._leaders.clear()  # others may lead by now
        await asyncio.sleep(0.02 + self.world.random.random() * 0.2)

    async def _ask(self, id_: TopicPartition, request: Any, version: int) -> Any:
        """Ask the leader of a partition; None if there is no answer. It may have been handled, too."""
        if self._happens(0.03):
            self._send_late(id_, request, version)
        leader = self._leaders.get(id_) or await self.leader(id_)
        self._leaders[id_] = leader
        try:
            peer = await self.connection(leader)
            return await peer.ask(request, version, timeout_s=PATIENCE_S)
        except PeerGone:
            return None

    def _send_late(self, id_: TopicPartition, request: Any, version: int) -> None:
        """Have a request arrive some time later: a broker may read a connection long after it was closed."""
        self.process.run(self._arrive_late(id_, request, version, self.world.random.random() * _LATEST_S))

    async def _arrive_late(self, id_: TopicPartition, request: Any, version: int, after_s: float) -> None:
        await asyncio.sleep(after_s)
        leader = await self.leader(id_)
        try:
            peer = await Peer.connect(Endpoint("PLAINTEXT", leader, 9092))
            answer = await peer.ask(request, version, timeout_s=PATIENCE_S)
        except PeerGone:
            return
        self.world.say(self.process.name, "is answered too late: %s", answer)
        peer.close()


def _code(answer: Any) -> ErrorCode:
    """The error of the one partition of a Produce or TxnOffsetCommit response."""
    if hasattr(answer, "responses"):
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def _is_retriable(code: ErrorCode) -> bool:
    return code.retriable or code is ErrorCode.CONCURRENT_TRANSACTIONS
