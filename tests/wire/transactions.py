"""A transactional producer that speaks the protocol itself, in either transaction version."""

import time
from typing import Any

from headrace.coordinators.decision import Producer
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from headrace.protocol.schema.end_txn import EndTxnRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.records import make_batch
from wire.group_stories.waiting import eventually
from wire.raw import RawClient

OLD, NEW = 0, 2  # transaction versions
_TRANSACTION = 1  # a type of coordinator


class RawProducer:
    """One instance of a producer; its own epoch and sequences. Requests in flight are the caller's matter."""

    def __init__(self, client: RawClient, transactional_id: str, version: int = NEW) -> None:
        self.client = client
        self.transactional_id = transactional_id
        self.version = version
        self.producer = Producer(-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}

    def begin(self) -> None:
        """InitProducerId, until the transaction of an earlier instance is aborted."""
        found = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=[self.transactional_id])
        eventually(lambda: self.client.ask(found, 4).coordinators[0].error_code == 0)
        eventually(lambda: self.init() is ErrorCode.NONE)

    def init(self, timeout_ms: int = 60_000) -> ErrorCode:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        response = self.client.ask(request, 5)
        if not response.error_code:
            self.producer = Producer(response.producer_id, response.producer_epoch)
            self._sequences.clear()
        return ErrorCode(response.error_code)

    def add(self, topic: str, *partitions: int) -> ErrorCode:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer.producer_id,
            v3_and_below_producer_epoch=self.producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=partitions or (0,))],
        )
        (result,) = self.client.ask(request, 3).results_by_topic_v3_and_below
        return ErrorCode(result.results_by_partition[0].partition_error_code)

    def request(self, topic: str, count: int = 1, *, partition: int = 0) -> ProduceRequest:
        """The next batch, as a request that is not sent."""
        sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = sequence + count
        batch = make_batch(
            count,
            timestamps=time.time_ns() // 1_000_000,  # markers are of the same time, and in the same segment
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        return ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=10_000,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=partition, records=batch)]
                )
            ],
        )

    @property
    def produce_version(self) -> int:
        return 12 if self.version == NEW else 9

    def send(self, topic: str, count: int = 1, *, partition: int = 0) -> Any:
        """What the broker says of the next batch."""
        response = self.client.ask(self.request(topic, count, partition=partition), self.produce_version)
        return response.responses[0].partition_responses[0]

    def end(self, *, commit: bool) -> ErrorCode:
        """EndTxn, with the epoch of the next transaction taken from the response."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer.producer_id,
            producer_epoch=self.producer.epoch,
            committed=commit,
        )
        response = self.client.ask(request, 5 if self.version == NEW else 3)
        if not response.error_code and self.version == NEW:
            self.producer = Producer(response.producer_id, response.producer_epoch)
            self._sequences.clear()
        return ErrorCode(response.error_code)
