"""What handlers answer when the disk fails under them."""

from typing import Any

import pytest

from headrace.broker.meters import Meters
from headrace.broker.records.appends import Appends
from headrace.broker.requests.dispatch import HANDLERS, Context, load_handlers
from headrace.broker.slices import at_once
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.schema.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from headrace.protocol.schema.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.storage.errors import StorageError

LISTENER = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)


class BrokenBroker:
    def __init__(self) -> None:
        self.meters = Meters()
        nobody: Any = None  # is asked, as no partition is found
        self.appends = Appends(
            nobody, nobody, nobody, self.meters, ensure_lease=nobody, disk_failed=self.disk_failed
        )

    def partition(self, _topic: str, _index: int) -> Any:
        raise StorageError("the disk is gone")

    def disk_failed(self) -> None:
        """Nobody else can lead."""


def ask(request: Message, version: int) -> Any:
    load_handlers()
    assert request.__api_key__ is not None
    broker: Any = BrokenBroker()
    result = HANDLERS[request.__api_key__].function(request, Context(broker, LISTENER, None, version))
    return result.reply if result.steps is None else at_once(result.steps).reply


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (
            DeleteRecordsRequest(
                topics=[
                    DeleteRecordsTopic(
                        name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=1)]
                    )
                ],
                timeout_ms=1,
            ),
            2,
        ),
        (DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]), 0),
        (
            OffsetForLeaderEpochRequest(
                topics=[
                    OffsetForLeaderTopic(
                        topic="t", partitions=[OffsetForLeaderPartition(partition=0, leader_epoch=0)]
                    )
                ]
            ),
            4,
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failing_disk_is_answered_with_its_code(request_: Message, version: int) -> None:
    answer = ask(request_, version)

    assert answer.topics[0].partitions[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_batch_that_a_failing_disk_does_not_take_is_refused() -> None:
    data = [PartitionProduceData(index=0, records=memoryview(b""))]
    request = ProduceRequest(
        acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)]
    )

    (reply,) = ask(request, 9).responses[0].partition_responses

    assert (reply.error_code, reply.error_message) == (ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
