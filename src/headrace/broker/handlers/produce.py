"""Produce (key 0), v3-v13.

Behaviour: acks=1 is answered when the leader has appended the batch, acks=-1 when the whole ISR has it.
           acks=0 gets no response, and an error closes the connection, so that the client refreshes its
           metadata. Records are read, in threads, if the topic is compacted, has a compression.type,
           validates schemas or has headrace.validate.records: the response lists every invalid record, and a
           batch that is too large to be read is refused with MESSAGE_TOO_LARGE. The first batch of a
           transaction waits until the transaction coordinator has confirmed its partition (KIP-890).
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in responses (not sent yet); v11 TRANSACTION_ABORTABLE; v12 partitions need not be added to
           a transaction before; v13 topics by id.
Quotas:    a client that exceeds its producer_byte_rate is throttled after the response.
"""

import asyncio
from collections.abc import Sequence
from typing import Final, NamedTuple, cast

from headrace.broker.coordinators.transaction_verification import refusal_of
from headrace.broker.errors import NotEnoughReplicas, TimedOut
from headrace.broker.records.inspections import Outcome
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.pending_verification import Verification
from headrace.broker.replicas.purgatory import Commit
from headrace.broker.requests.dispatch import Context, HangUp, handles
from headrace.broker.requests.requirements import on_topics, on_transactional_ids
from headrace.broker.results import NO_RESPONSE, Reply, Result
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, Failure, error_code, error_message
from headrace.coordinators.decision import Producer
from headrace.protocol.batch import HEADER_SIZE, read_header
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.kafka_errors import InvalidRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from headrace.security.authorization import Operation
from headrace.storage.errors import InvalidTopic, StorageError
from headrace.storage.topics import INTERNAL_TOPICS

BY_ID = 13
_ABORTABLE, _IMPLICIT_PARTITIONS = 11, 12
AT_ONCE = 256  # topics, and partitions; a request with more is processed in slices
_ALL = -1
_ACKS = (_ALL, 0, 1)

_WRITE: Final = on_transactional_ids(Operation.WRITE)
_WRITE_TOPIC: Final = on_topics(Operation.WRITE)


@handles(
    ApiKey.PRODUCE,
    range(3, 14),
    requires=(_WRITE_TOPIC, _WRITE),
)
def produce(request: ProduceRequest, context: Context) -> Result:
    """Append or queue every batch in order; the result waits for the acks.

    Batches whose records have to be read are queued per partition (see `broker.inspections`).
    """
    topics = request.topic_data
    if len(topics) > AT_ONCE or sum([len(topic.partition_data) for topic in topics]) > AT_ONCE:
        return Result(steps=_in_steps(request, context))
    appends = _Appends([], [])
    replies = [_topic(topic, request, context, appends) for topic in topics]
    return _respond(replies, appends, request, context)


def _in_steps(request: ProduceRequest, context: Context) -> Steps[Result]:
    """Append like `produce`, in slices, for a request with many partitions."""
    appends = _Appends([], [])
    topics = []
    for topic in request.topic_data:
        yield
        replies: list[PartitionProduceResponse] = []
        for first in range(0, len(topic.partition_data), STEP):
            yield
            some = topic.partition_data[first : first + STEP]
            _append_each(topic, some, request, context, appends, replies=replies)
        topics.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)
        )
    return _respond(topics, appends, request, context)


def _respond(
    topics: list[TopicProduceResponse], appends: "_Appends", request: ProduceRequest, context: Context
) -> Result:
    if appends.queued:
        return Result(later=_answer_later(topics, appends, request, context))
    return _answer(topics, appends.uncommitted, request, context)


class _Appends(NamedTuple):
    """The batches that the response has to wait for."""

    queued: "list[_QueuedBatch]"
    uncommitted: "list[_UncommittedBatch]"


class _QueuedBatch(NamedTuple):
    """A batch that waits for a verification, or whose records are being read; where its response belongs."""

    done: "asyncio.Future[PartitionProduceResponse]"
    replies: list[PartitionProduceResponse]
    position: int


def _answer(
    replies: list[TopicProduceResponse],
    waiting: "list[_UncommittedBatch]",
    request: ProduceRequest,
    context: Context,
) -> Result:
    if waiting:
        return Result(later=_wait(replies, waiting, request.timeout_ms, context.broker.loop))
    if request.acks != 0:
        return Result(ProduceResponse(responses=replies))
    for refused in (each for topic in replies for each in topic.partition_responses if each.error_code):
        raise HangUp(f"closing the connection after a failed Produce with acks=0: {refused.error_message}")
    return NO_RESPONSE


async def _answer_later(
    replies: list[TopicProduceResponse], appends: _Appends, request: ProduceRequest, context: Context
) -> Reply:
    for queued in appends.queued:
        await asyncio.wait([queued.done])  # which does not cancel the append if the client disconnects
        queued.replies[queued.position] = queued.done.result()
    return cast("Reply", await _answer(replies, appends.uncommitted, request, context).response())


class _UncommittedBatch(NamedTuple):
    """A batch that is appended and not committed yet, with the response for a successful commit."""

    done: Commit
    reply: PartitionProduceResponse


async def _wait(
    replies: list[TopicProduceResponse],
    waiting: list[_UncommittedBatch],
    timeout_ms: int,
    loop: asyncio.AbstractEventLoop,
) -> ProduceResponse:
    """Return the response when all batches are committed or have failed, or after the client's timeout."""
    timer = loop.call_later(max(timeout_ms, 0) / 1000, _time_out, waiting)
    try:
        errors = [(each.reply, await each.done) for each in waiting]
    finally:
        timer.cancel()
    refused = {id(reply): _refused(reply.index, error) for reply, error in errors if error is not None}
    return _with_failures(replies, refused) if refused else ProduceResponse(responses=replies)


def _time_out(waiting: list[_UncommittedBatch]) -> None:
    timed_out = TimedOut("not all replicas of the ISR have fetched the batch in time (REQUEST_TIMED_OUT)")
    for each in waiting:
        if not each.done.done():
            each.done.set_result(timed_out)


def _with_failures(
    replies: list[TopicProduceResponse], refused: dict[int, PartitionProduceResponse]
) -> ProduceResponse:
    """Return the response with the successes in `replies` replaced by the failures in `refused`."""
    return ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[refused.get(id(each), each) for each in topic.partition_responses],
            )
            for topic in replies
        ]
    )


def _topic(
    topic: TopicProduceData, request: ProduceRequest, context: Context, appends: _Appends
) -> TopicProduceResponse:
    replies: list[PartitionProduceResponse] = []
    _append_each(topic, topic.partition_data, request, context, appends, replies=replies)
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)


def _append_each(
    topic: TopicProduceData,
    batches: Sequence[PartitionProduceData],
    request: ProduceRequest,
    context: Context,
    appends: _Appends,
    *,
    replies: list[PartitionProduceResponse],
) -> None:
    """Append batches of a topic and add the response of each to `replies`."""
    try:
        name = _writable(topic, request, context)
    except KafkaError as error:
        replies += [_refused(data.index, error) for data in batches]
        return
    for data in batches:
        reply = _append_or_wait(name, data, request, context, appends)
        if isinstance(reply, asyncio.Future):
            appends.queued.append(_QueuedBatch(reply, replies, len(replies)))
            replies.append(PartitionProduceResponse(index=data.index, base_offset=-1))  # a placeholder
        else:
            replies.append(reply)


def _writable(topic: TopicProduceData, request: ProduceRequest, context: Context) -> str:
    """Return the name of a topic; raise the error of all its partitions, if the client may not write."""
    name = topic.name if context.version < BY_ID else context.broker.topic_name(topic.topic_id)
    if request.transactional_id is not None:
        context.require(_WRITE, request.transactional_id)
    context.require(_WRITE_TOPIC, name)
    return name


def _append_or_wait(
    topic: str, data: PartitionProduceData, request: ProduceRequest, context: Context, appends: _Appends
) -> "PartitionProduceResponse | asyncio.Future[PartitionProduceResponse]":
    """Append a batch and return its response; return a future if it has to wait for a verification."""
    broker, acks = context.broker, request.acks
    try:
        if acks not in _ACKS:
            raise InvalidRequiredAcks(f"acks={acks} is not 0, 1 or -1 (INVALID_REQUIRED_ACKS)")
        if data.records is None:
            raise InvalidRequest(f"{topic}-{data.index}: the request has no records (INVALID_REQUEST)")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is internal: clients cannot produce to it (INVALID_TOPIC_EXCEPTION)")
        partition = broker.partition(topic, data.index)
        if request.transactional_id is not None:
            producer = _transactional_producer(data.records)
            if producer is not None:
                partition.ensure_leader()
                verification = broker.transactions.verifier.required(
                    partition,
                    request.transactional_id,
                    producer,
                    adds=context.version >= _IMPLICIT_PARTITIONS,
                    size=len(data.records),
                )
                if verification is not None:
                    records = bytearray(data.records)
                    waiting = _append_verified(
                        partition, records, acks, context, appends, verification=verification
                    )
                    return broker.loop.create_task(waiting)
    except FAILURES as error:
        return _failed(topic, data.index, error, context)
    return _append_or_read(partition, data.records, acks, context, appends)


def _transactional_producer(records: Buffer) -> Producer | None:
    """Return the producer of a transactional batch; None if it is another, or cannot be a batch."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    return Producer(header.producer_id, header.producer_epoch) if header.is_transactional else None


async def _append_verified(
    partition: Partition,
    records: Buffer,
    acks: int,
    context: Context,
    appends: _Appends,
    *,
    verification: Verification,
) -> PartitionProduceResponse:
    """Append the first batch of a transaction once its coordinator has confirmed the partition."""
    try:
        error = await verification.answer()
        if error is not None:
            refusal = refusal_of(
                error, knows_abortable=context.version >= _ABORTABLE, retried_as=NotEnoughReplicas
            )
            return _failed(partition.id.topic, partition.id.partition, refusal, context)
        reply = _append_or_read(partition, records, acks, context, appends, verification=verification)
        return await reply if isinstance(reply, asyncio.Future) else reply
    finally:
        context.broker.transactions.verifier.release(partition, verification, len(records))


def _append_or_read(
    partition: Partition,
    records: Buffer,
    acks: int,
    context: Context,
    appends: _Appends,
    *,
    verification: Verification | None = None,
) -> "PartitionProduceResponse | asyncio.Future[PartitionProduceResponse]":
    """Append a batch and return its response; queue it and return a future if its records must be read."""
    broker = context.broker
    try:
        if broker.inspections.must_wait(partition, records):
            partition.ensure_leader()
            return broker.inspections.enqueue(
                partition,
                records,
                lambda outcome: _append(
                    partition, outcome, acks, context, appends.uncommitted, verification=verification
                ),
            )
    except FAILURES as error:
        return _failed(partition.id.topic, partition.id.partition, error, context)
    return _append(partition, records, acks, context, appends.uncommitted, verification=verification)


def _append(
    partition: Partition,
    batch: Buffer | Outcome,
    acks: int,
    context: Context,
    uncommitted: list[_UncommittedBatch],
    *,
    verification: Verification | None,
) -> PartitionProduceResponse:
    """Append a batch, unless reading its records has failed, and return its response."""
    broker, id_ = context.broker, partition.id
    if isinstance(batch, KafkaError):
        return _failed(id_.topic, id_.partition, batch, context)
    try:
        if (
            acks != _ALL
        ):  # with acks=all, the ISR has to fetch the batch, and would not fetch from a stale leader
            broker.ensure_lease(partition)
        appended, commit = partition.append(batch, acks_all=acks == _ALL, verification=verification)
    except FAILURES as error:
        return _failed(id_.topic, id_.partition, error, context)
    reply = PartitionProduceResponse(
        index=id_.partition,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    if acks == _ALL:
        broker.schemas.written(id_.topic)
        if commit is not None:
            uncommitted.append(_UncommittedBatch(commit, reply))
    return reply


def _failed(topic: str, index: int, error: Failure, context: Context) -> PartitionProduceResponse:
    if isinstance(error, StorageError):
        context.broker.disk_failed()
    context.broker.meters.of(topic).failed_produces += 1
    return _refused(index, error)


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


def _refused(index: int, error: Failure) -> PartitionProduceResponse:
    """Return the response of a refused batch, with the errors of its records.

    Clients apply an error without record errors to every record of the batch.
    """
    record_errors = error.record_errors if isinstance(error, KafkaError) else ()
    return PartitionProduceResponse(
        index=index,
        error_code=error_code(error),
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in record_errors
        ],
        error_message=error_message(error),
    )
