"""Transactions as no client would use them: zombies, late requests, wrong states, absurd values."""

import time
from typing import Any

import pytest

from headrace.protocol.control_records import ControlRecordType, decode_control_key
from headrace.protocol.errors import ErrorCode
from headrace.protocol.records import decode_batch
from headrace.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.schema.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.heartbeat import HeartbeatRequest
from headrace.protocol.schema.init_producer_id import InitProducerIdRequest
from headrace.protocol.schema.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from headrace.protocol.schema.metadata import MetadataRequest, MetadataRequestTopic
from headrace.protocol.schema.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from headrace.protocol.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.schema.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from support.records import headers_of, make_batch, split_batches
from wire.group_stories.waiting import eventually
from wire.raw import RawClient
from wire.requests import create_topic, fetch, fresh_name, produce, produce_request, records_in
from wire.transactions import NEW, OLD, RawProducer

COMMITTED = 1  # an isolation level


@pytest.fixture
def topic(raw: RawClient) -> str:
    name = fresh_name("transactions")
    create_topic(raw, name, partitions=2)
    return name


@pytest.fixture(params=[OLD, NEW], ids=["v1", "v2"])
def producer(raw: RawClient, request: pytest.FixtureRequest) -> RawProducer:
    made = RawProducer(raw, fresh_name("id"), request.param)
    made.begin()
    return made


def write(producer: RawProducer, topic: str, count: int = 1, *, partition: int = 0) -> None:
    if producer.version == OLD:
        assert producer.add(topic, partition) is ErrorCode.NONE
    assert producer.send(topic, count, partition=partition).error_code == ErrorCode.NONE


def plain() -> bytearray:
    """A batch of the same time as markers: a much older one would be in another segment."""
    return make_batch(1, timestamps=time.time_ns() // 1_000_000)


def visible(raw: RawClient, topic: str, *, partition: int = 0) -> int:
    """How many records a read_committed consumer gets."""
    found = fetch(raw, topic, partitions=[partition], isolation_level=COMMITTED)
    aborted = {each.producer_id: each.first_offset for each in found.aborted_transactions or ()}
    count = 0
    for header in headers_of(found.records or b""):
        if header.is_control:
            aborted.pop(header.producer_id, None)
        elif not header.is_transactional or header.base_offset < aborted.get(header.producer_id, 2**62):
            count += header.records_count
    return count


def completed(producer: RawProducer) -> None:
    """Wait until the markers are written."""

    def state() -> str:
        request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id])
        found: str = producer.client.ask(request, 0).transaction_states[0].transaction_state
        return found

    eventually(lambda: state().startswith("Complete"))


# -- what readers see ------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_records_are_visible_when_their_transaction_is_committed(
    raw: RawClient, producer: RawProducer, topic: str, commit: bool
) -> None:
    for partition in (0, 1):
        write(producer, topic, 3, partition=partition)
        assert visible(raw, topic, partition=partition) == 0
    assert len(records_in(fetch(raw, topic))) == 3  # read_uncommitted

    assert producer.end(commit=commit) is ErrorCode.NONE
    completed(producer)

    for partition in (0, 1):
        assert visible(raw, topic, partition=partition) == (3 if commit else 0)


def test_an_open_transaction_hides_everything_after_it(
    raw: RawClient, producer: RawProducer, topic: str
) -> None:
    produce(raw, topic, plain())
    write(producer, topic)
    produce(raw, topic, plain())

    assert visible(raw, topic) == 1
    assert end_offset(raw, topic) == 1
    producer.end(commit=True)
    completed(producer)
    assert visible(raw, topic) == 3
    assert end_offset(raw, topic) == 4  # with the marker


def end_offset(raw: RawClient, topic: str) -> int:
    """The last stable offset, which is the end for read_committed consumers."""
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=COMMITTED,
        topics=[
            ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)])
        ],
    )
    found: int = raw.ask(request, 5).topics[0].partitions[0].offset
    return found


def test_markers_are_control_batches_as_kafkas(raw: RawClient, producer: RawProducer, topic: str) -> None:
    sent_by = producer.producer
    write(producer, topic)
    producer.end(commit=False)
    completed(producer)

    batch = split_batches(fetch(raw, topic).records or b"")[-1]
    (header,) = headers_of(batch)

    assert (header.is_control, header.is_transactional) == (True, True)
    assert header.producer_id == sent_by.producer_id
    assert header.producer_epoch == sent_by.epoch + (producer.version == NEW)
    assert header.base_sequence == -1
    (record,) = decode_batch(batch, header)
    assert decode_control_key(record.key or b"") is ControlRecordType.ABORT


def test_batches_in_flight_keep_their_order(raw: RawClient, topic: str) -> None:
    """The first one waits for the transaction coordinator, and the others must not overtake it."""
    producer = RawProducer(raw, fresh_name("id"))
    producer.begin()
    for _ in range(5):
        requests = [producer.request(topic) for _ in range(20)]
        for request in requests:
            raw.send(request, producer.produce_version)
        answers = [raw.receive(request, producer.produce_version) for request in requests]
        codes = {each.responses[0].partition_responses[0].error_code for each in answers}
        assert codes == {ErrorCode.NONE}
        assert producer.end(commit=True) is ErrorCode.NONE

    completed(producer)
    assert visible(raw, topic) == 100


# -- zombies ---------------------------------------------------------------------------------------


def test_a_new_instance_fences_the_old_one_and_aborts_its_transaction(
    raw: RawClient, producer: RawProducer, topic: str
) -> None:
    write(producer, topic)
    late = producer.request(topic)
    successor = RawProducer(raw, producer.transactional_id, producer.version)
    successor.begin()

    refused = raw.ask(late, producer.produce_version).responses[0].partition_responses[0]
    assert refused.error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end(commit=True) in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE}
    assert producer.add(topic, 1) is ErrorCode.PRODUCER_FENCED
    write(successor, topic)
    assert successor.end(commit=True) is ErrorCode.NONE
    completed(successor)
    assert visible(raw, topic) == 1


def test_a_batch_that_comes_after_the_end_does_not_open_a_transaction(
    raw: RawClient, producer: RawProducer, topic: str
) -> None:
    """It would never get a marker, and would hide everything after it for ever."""
    write(producer, topic)
    late = producer.request(topic)
    producer.end(commit=False)
    completed(producer)

    code = raw.ask(late, producer.produce_version).responses[0].partition_responses[0].error_code

    assert code in {ErrorCode.INVALID_TXN_STATE, ErrorCode.INVALID_PRODUCER_EPOCH}
    produce(raw, topic, plain())
    assert visible(raw, topic) == 1


def test_a_batch_whose_partition_was_not_added_is_refused(raw: RawClient, topic: str) -> None:
    """By a client that has to add it: Produce v12 is what adds it implicitly."""
    producer = RawProducer(raw, fresh_name("id"), OLD)
    producer.begin()
    producer.add(topic, 0)

    for version, code in ((9, ErrorCode.INVALID_TXN_STATE), (11, ErrorCode.TRANSACTION_ABORTABLE)):
        answer = raw.ask(producer.request(topic, partition=1), version)
        assert answer.responses[0].partition_responses[0].error_code == code
    assert records_in(fetch(raw, topic, partitions=[1])) == []


def test_a_transactional_batch_without_a_transactional_id_is_refused(raw: RawClient, topic: str) -> None:
    batch = make_batch(1, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)

    answer = raw.ask(produce_request(topic, batch, acks=-1), 9).responses[0].partition_responses[0]

    assert answer.error_code == ErrorCode.INVALID_TXN_STATE


def test_a_marker_of_an_earlier_transaction_does_not_end_a_later_one(raw: RawClient, topic: str) -> None:
    producer = RawProducer(raw, fresh_name("id"))
    producer.begin()
    write(producer, topic)
    producer.end(commit=False)
    completed(producer)
    delayed = marker(producer, topic, commit=True)
    write(producer, topic)

    (result,) = raw.ask(delayed, 2).markers

    assert result.topics[0].partitions[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert visible(raw, topic) == 0


def marker(producer: RawProducer, topic: str, *, commit: bool, version: int = NEW) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=producer.producer.producer_id,
                producer_epoch=producer.producer.epoch,
                transaction_result=commit,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                coordinator_epoch=0,
                transaction_version=version,
            )
        ]
    )


def test_an_administrator_can_abort_a_hanging_transaction(raw: RawClient, topic: str) -> None:
    """As kafka-transactions.sh does: with the epoch that DescribeProducers shows."""
    producer = RawProducer(raw, fresh_name("id"))
    producer.begin()
    write(producer, topic)
    described = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    (hanging,) = raw.ask(described, 0).topics[0].partitions[0].active_producers
    assert (hanging.producer_id, hanging.current_txn_start_offset) == (producer.producer.producer_id, 0)

    (result,) = raw.ask(marker(producer, topic, commit=False, version=OLD), 1).markers

    assert result.topics[0].partitions[0].error_code == ErrorCode.NONE
    assert end_offset(raw, topic) == 2


# -- wrong states and values -----------------------------------------------------------------------


def test_requests_in_the_wrong_state_are_refused(producer: RawProducer, topic: str) -> None:
    assert producer.end(commit=True) is ErrorCode.INVALID_TXN_STATE
    write(producer, topic)
    ended = producer.producer
    assert producer.end(commit=True) is ErrorCode.NONE
    completed(producer)
    producer.producer = ended

    assert producer.end(commit=True) is ErrorCode.NONE  # a retry
    producer.producer = ended
    assert producer.end(commit=False) is ErrorCode.INVALID_TXN_STATE


@pytest.mark.parametrize("timeout_ms", [0, -1, 2**31 - 1])
def test_absurd_timeouts_are_refused(raw: RawClient, timeout_ms: int) -> None:
    producer = RawProducer(raw, fresh_name("id"))
    producer.begin()

    assert producer.init(timeout_ms) is ErrorCode.INVALID_TRANSACTION_TIMEOUT


def test_unknown_producers_are_refused(raw: RawClient, topic: str) -> None:
    nobody = RawProducer(raw, fresh_name("id"))

    assert nobody.add(topic) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert nobody.end(commit=True) is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    stranger = RawProducer(raw, fresh_name("id"))
    stranger.begin()
    stranger.transactional_id = nobody.transactional_id
    assert stranger.send(topic).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    offsets = AddOffsetsToTxnRequest(
        transactional_id=nobody.transactional_id, producer_id=1, producer_epoch=0, group_id="g"
    )
    assert raw.ask(offsets, 3).error_code == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=1000)
    assert raw.ask(empty, 5).error_code == ErrorCode.INVALID_REQUEST


def test_partitions_are_added_all_or_none(raw: RawClient, topic: str) -> None:
    producer = RawProducer(raw, fresh_name("id"), OLD)
    producer.begin()

    assert producer.add(topic, 0, 99) is ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.end(commit=False) is ErrorCode.INVALID_TXN_STATE


def test_a_transaction_is_aborted_at_its_timeout(raw: RawClient, producer: RawProducer, topic: str) -> None:
    producer.init(timeout_ms=100)
    write(producer, topic)
    completed(producer)

    assert visible(raw, topic) == 0
    assert end_offset(raw, topic) == 2
    assert producer.end(commit=True) in {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_TXN_STATE}


def test_verification_is_for_several_transactions(raw: RawClient, topic: str) -> None:
    producer = RawProducer(raw, fresh_name("id"))
    producer.begin()
    write(producer, topic)
    asked = [
        AddPartitionsToTxnTransaction(
            transactional_id=name,
            producer_id=producer.producer.producer_id,
            producer_epoch=producer.producer.epoch,
            verify_only=True,
            topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0, 1])],
        )
        for name in (producer.transactional_id, "nobody's")
    ]

    answers = raw.ask(AddPartitionsToTxnRequest(transactions=asked), 5).results_by_transaction

    codes = [
        [each.partition_error_code for each in answer.topic_results[0].results_by_partition]
        for answer in answers
    ]
    assert codes == [
        [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE],
        [ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_ID_MAPPING],
    ]


# -- offsets ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_take_effect_with_the_transaction(
    raw: RawClient, producer: RawProducer, topic: str, commit: bool
) -> None:
    group = fresh_name("group")
    assert commit_offset(producer, group, topic, 5) is ErrorCode.NONE

    assert offset(raw, group, topic, stable=False) == (ErrorCode.NONE, -1)
    assert offset(raw, group, topic, stable=True) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
    assert producer.end(commit=commit) is ErrorCode.NONE
    completed(producer)
    assert offset(raw, group, topic, stable=True) == (ErrorCode.NONE, 5 if commit else -1)


def commit_offset(
    producer: RawProducer, group: str, topic: str, committed: int, *, generation: int = -1, member: str = ""
) -> ErrorCode:
    if producer.version == OLD:
        add = AddOffsetsToTxnRequest(
            transactional_id=producer.transactional_id,
            producer_id=producer.producer.producer_id,
            producer_epoch=producer.producer.epoch,
            group_id=group,
        )
        assert producer.client.ask(add, 3).error_code == ErrorCode.NONE
    find_group_coordinator(producer.client, group)
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id=group,
        producer_id=producer.producer.producer_id,
        producer_epoch=producer.producer.epoch,
        generation_id_or_member_epoch=generation,
        member_id=member,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=committed, committed_metadata=""
                    )
                ],
            )
        ],
    )
    response = producer.client.ask(request, 5 if producer.version == NEW else 3)
    return ErrorCode(response.topics[0].partitions[0].error_code)


def find_group_coordinator(client: RawClient, group: str) -> None:
    """Wait for the coordinator: the first request of a broker's life creates __consumer_offsets."""
    request = FindCoordinatorRequest(coordinator_keys=[group])
    heartbeat = HeartbeatRequest(group_id=group, generation_id=1, member_id="nobody")
    eventually(lambda: client.ask(request, 4).coordinators[0].error_code == ErrorCode.NONE)
    eventually(lambda: client.ask(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID)  # it is loaded


def offset(raw: RawClient, group: str, topic: str, *, stable: bool) -> tuple[ErrorCode, int]:
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
            )
        ],
        require_stable=stable,
    )
    found = raw.ask(request, 8).groups[0].topics[0].partitions[0]
    return ErrorCode(found.error_code), found.committed_offset


def test_offsets_of_a_member_that_is_not_in_the_group_are_refused(producer: RawProducer, topic: str) -> None:
    group = fresh_name("group")

    code = commit_offset(producer, group, topic, 5, generation=3, member="somebody")

    assert code is ErrorCode.ILLEGAL_GENERATION


def test_offsets_of_v6_are_committed_by_topic_id(raw: RawClient, topic: str) -> None:
    producer = RawProducer(raw, fresh_name("id"), NEW)
    producer.begin()
    find_group_coordinator(raw, group := fresh_name("group"))
    topic_id = raw.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12).topics[0].topic_id
    unknown_id = b"an unknown topic"

    def commit(**member: Any) -> list[tuple[bytes, ErrorCode]]:
        request = TxnOffsetCommitRequest(
            transactional_id=producer.transactional_id,
            group_id=group,
            producer_id=producer.producer.producer_id,
            producer_epoch=producer.producer.epoch,
            **member,
            topics=[
                TxnOffsetCommitRequestTopic(
                    topic_id=each,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=0, committed_offset=7, committed_metadata=""
                        )
                    ],
                )
                for each in (topic_id, unknown_id)
            ],
        )
        answer = raw.ask(request, 6)
        return [(each.topic_id, ErrorCode(each.partitions[0].error_code)) for each in answer.topics]

    assert commit(generation_id_or_member_epoch=3, member_id="nobody") == [
        (topic_id, ErrorCode.GROUP_ID_NOT_FOUND),
        (unknown_id, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    assert commit() == [(topic_id, ErrorCode.NONE), (unknown_id, ErrorCode.UNKNOWN_TOPIC_ID)]
    assert producer.end(commit=True) is ErrorCode.NONE
    eventually(lambda: offset(raw, group, topic, stable=True) == (ErrorCode.NONE, 7))


def test_offsets_without_the_group_in_the_transaction_are_refused(raw: RawClient, topic: str) -> None:
    producer = RawProducer(raw, fresh_name("id"), OLD)
    producer.begin()
    producer.add(topic)
    find_group_coordinator(raw, "g")
    request = TxnOffsetCommitRequest(
        transactional_id=producer.transactional_id,
        group_id="g",
        producer_id=producer.producer.producer_id,
        producer_epoch=producer.producer.epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
        ],
    )
    for version, code in ((3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)):
        assert raw.ask(request, version).topics[0].partitions[0].error_code == code


# -- operations ------------------------------------------------------------------------------------


def test_transactions_are_listed_by_state_producer_duration_and_pattern(
    raw: RawClient, producer: RawProducer, topic: str
) -> None:
    write(producer, topic)
    name = producer.transactional_id

    def listed(version: int = 2, **filters: object) -> list[str]:
        request = ListTransactionsRequest(
            **{"state_filters": [], "producer_id_filters": [], **filters}  # type: ignore[arg-type]
        )
        response = raw.ask(request, version)
        assert response.error_code == ErrorCode.NONE
        return [each.transactional_id for each in response.transaction_states]

    assert name in listed(0)
    assert name in listed(state_filters=["Ongoing"])
    assert name not in listed(state_filters=["CompleteCommit"])
    assert listed(producer_id_filters=[producer.producer.producer_id]) == [name]
    assert name not in listed(duration_filter=3_600_000)
    assert listed(transactional_id_pattern=name.replace("id", "i.")) == [name]
    assert raw.ask(
        ListTransactionsRequest(state_filters=["Odd"], producer_id_filters=[]), 0
    ).unknown_state_filters == ["Odd"]
    broken = ListTransactionsRequest(state_filters=[], producer_id_filters=[], transactional_id_pattern="(")
    assert raw.ask(broken, 2).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    producer.end(commit=False)


def test_a_transaction_is_described(raw: RawClient, producer: RawProducer, topic: str) -> None:
    write(producer, topic, partition=1)
    request = DescribeTransactionsRequest(transactional_ids=[producer.transactional_id, "nobody", ""])

    found, unknown, empty = raw.ask(request, 0).transaction_states

    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert (found.producer_id, found.producer_epoch) == producer.producer
    assert [(each.topic, list(each.partitions)) for each in found.topics] == [(topic, [1])]
    assert unknown.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert empty.error_code == ErrorCode.INVALID_REQUEST
    producer.end(commit=False)
