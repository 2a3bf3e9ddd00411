"""Produce (key 0), v3-v13.

Behaviour: acks=1 is answered when the leader has appended the batch, acks=-1 when the whole ISR has it.
           acks=0 gets no response, and an error closes the connection, so that the client refreshes its
           metadata. Records are read, in threads, if the topic is compacted, has a compression.type,
           validates schemas or has headrace.validate.records: the response lists every invalid record, and a
           batch that is too large to be read is refused with MESSAGE_TOO_LARGE.
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in responses (not sent yet); v13 topics by id.
Not yet:   transactions, quotas.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from headrace.broker.dispatch import Context, HangUp, Reply, handles
from headrace.broker.errors import TimedOut, UnknownTopicId
from headrace.broker.inspections import Outcome
from headrace.broker.partition import Partition
from headrace.broker.purgatory import Commit
from headrace.broker.requirements import on_topics, on_transactional_ids
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, Failure, error_code, error_message
from headrace.controller.errors import InvalidRequest
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.fields import Buffer
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
AT_ONCE = 256  # topics, and partitions; a request with more is processed in slices
_ALL = -1
_ACKS = (_ALL, 0, 1)


@handles(
    ApiKey.PRODUCE,
    range(3, 14),
    requires=(
        on_topics(Operation.WRITE, lambda request: request.topic_data),
        on_transactional_ids(
            Operation.WRITE, lambda request: [request.transactional_id] if request.transactional_id else ()
        ),
    ),
)
def produce(
    request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[Reply] | Steps[ProduceResponse | Awaitable[Reply] | None] | None:
    """Append or queue every batch in order; the returned awaitable waits for the acks.

    Batches whose records have to be read are queued per partition (see `broker.inspections`).
    """
    topics = request.topic_data
    if len(topics) > AT_ONCE or sum(len(topic.partition_data) for topic in topics) > AT_ONCE:
        return _in_steps(request, context)
    appends = _Appends([], [])
    replies = [_topic(topic, request.acks, context, appends) for topic in topics]
    return _respond(replies, appends, request, context)


def _in_steps(request: ProduceRequest, context: Context) -> Steps[ProduceResponse | Awaitable[Reply] | None]:
    """Append like `produce`, in slices, for a request with many partitions."""
    appends = _Appends([], [])
    topics = []
    for topic in request.topic_data:
        yield
        replies: list[PartitionProduceResponse] = []
        for first in range(0, len(topic.partition_data), STEP):
            yield
            some = topic.partition_data[first : first + STEP]
            _append_each(topic, some, request.acks, context, appends, replies=replies)
        topics.append(
            TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)
        )
    return _respond(topics, appends, request, context)


def _respond(
    topics: list[TopicProduceResponse], appends: "_Appends", request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[Reply] | None:
    if appends.queued:
        return _answer_later(topics, appends, request, context)
    return _answer(topics, appends.uncommitted, request, context)


class _Appends(NamedTuple):
    """The batches that the response has to wait for."""

    queued: "list[_QueuedBatch]"
    uncommitted: "list[_UncommittedBatch]"


class _QueuedBatch(NamedTuple):
    """A batch whose records are being read; its response belongs in `replies` at `position`."""

    done: "asyncio.Future[PartitionProduceResponse]"
    replies: list[PartitionProduceResponse]
    position: int


def _answer(
    replies: list[TopicProduceResponse],
    waiting: "list[_UncommittedBatch]",
    request: ProduceRequest,
    context: Context,
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    if waiting:
        return _wait(replies, waiting, request.timeout_ms, context.broker.loop)
    if request.acks != 0:
        return ProduceResponse(responses=replies)
    for refused in (each for topic in replies for each in topic.partition_responses if each.error_code):
        raise HangUp(f"closing the connection after a failed Produce with acks=0: {refused.error_message}")
    return None


async def _answer_later(
    replies: list[TopicProduceResponse], appends: _Appends, request: ProduceRequest, context: Context
) -> Reply:
    for each in appends.queued:
        each.replies[each.position] = await each.done
    answer = _answer(replies, appends.uncommitted, request, context)
    return await answer if inspect.isawaitable(answer) else answer


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


def _topic(topic: TopicProduceData, acks: int, context: Context, appends: _Appends) -> TopicProduceResponse:
    replies: list[PartitionProduceResponse] = []
    _append_each(topic, topic.partition_data, acks, context, appends, replies=replies)
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)


def _append_each(
    topic: TopicProduceData,
    batches: Sequence[PartitionProduceData],
    acks: int,
    context: Context,
    appends: _Appends,
    *,
    replies: list[PartitionProduceResponse],
) -> None:
    """Append batches of a topic and add the response of each to `replies`."""
    name, problem = topic.name, None
    if context.version >= BY_ID:
        try:
            name = context.broker.topic_name(topic.topic_id)
        except UnknownTopicId as error:
            problem = error
    for data in batches:
        if problem is not None:
            replies.append(_refused(data.index, problem))
            continue
        reply = _append_or_wait(name, data, acks, context, appends)
        if isinstance(reply, asyncio.Future):
            appends.queued.append(_QueuedBatch(reply, replies, len(replies)))
            replies.append(PartitionProduceResponse(index=data.index, base_offset=-1))  # a placeholder
        else:
            replies.append(reply)


def _append_or_wait(
    topic: str, data: PartitionProduceData, acks: int, context: Context, appends: _Appends
) -> "PartitionProduceResponse | asyncio.Future[PartitionProduceResponse]":
    """Append a batch and return its response; queue it and return a future if its records must be read."""
    broker = context.broker
    try:
        if acks not in _ACKS:
            raise InvalidRequiredAcks(f"acks={acks} is not 0, 1 or -1 (INVALID_REQUIRED_ACKS)")
        if data.records is None:
            raise InvalidRequest(f"{topic}-{data.index}: the request has no records (INVALID_REQUEST)")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is internal: clients cannot produce to it (INVALID_TOPIC_EXCEPTION)")
        partition = broker.partition(topic, data.index)
        if broker.inspections.must_wait(partition, data.records):
            partition.ensure_leader()
            return broker.inspections.enqueue(
                partition,
                data.records,
                lambda outcome: _append(partition, outcome, acks, context, appends.uncommitted),
            )
    except FAILURES as error:
        return _failed(topic, data.index, error, context)
    return _append(partition, data.records, acks, context, appends.uncommitted)


def _append(
    partition: Partition,
    batch: Buffer | Outcome,
    acks: int,
    context: Context,
    uncommitted: list[_UncommittedBatch],
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
        appended, commit = partition.append(batch, acks_all=acks == _ALL)
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
