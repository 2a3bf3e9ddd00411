"""Produce (key 0), v3-v13.

Behaviour: acks=1 is answered when the batch is in the leader's log, acks=-1 when all in sync have it.
           acks=0 gets no reply, and an error closes the connection, so that the client looks for the
           leader again.
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in replies (not sent yet); v13 topics by id.
Not yet:   transactions, quotas.
"""

import asyncio
import inspect
from collections.abc import Awaitable
from typing import NamedTuple

from headrace.broker.dispatch import Context, HangUp, Reply, handles
from headrace.broker.errors import InvalidRequest, TimedOut, UnknownTopicId
from headrace.broker.image import INTERNAL_TOPICS
from headrace.broker.schema_rules import WrongSchema
from headrace.broker.translate import FAILURES, Failure, error_code
from headrace.protocol.errors import ErrorCode, InvalidRecord, KafkaError
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
from headrace.storage.errors import InvalidTopic, StorageError

BY_ID = 13
_ALL = -1
_ACKS = (_ALL, 0, 1)


@handles(ApiKey.PRODUCE, range(3, 14))
def produce(request: ProduceRequest, context: Context) -> ProduceResponse | Awaitable[Reply] | None:
    """Append every batch, in order, before returning; what is returned waits for the acks.

    Topics with a rule about schemas may have to wait for those to be looked up. Each of their partitions has
    a line of its own for that, so that nobody is overtaken; and other topics of the request do not wait.
    """
    rules = context.broker.schemas.rules
    waiting: list[_Waiting] = []
    if not rules or not any(_name(topic, context) in rules for topic in request.topic_data):
        replies = [_topic(topic, request.acks, context, waiting) for topic in request.topic_data]
        return _answer(replies, waiting, request, context)
    at_once = [
        _topic(topic, request.acks, context, waiting)
        for topic in request.topic_data
        if _name(topic, context) not in rules
    ]
    checked = [_copied(topic) for topic in request.topic_data if _name(topic, context) in rules]
    return _check_and_answer(checked, at_once, waiting, request, context)


def _answer(
    replies: list[TopicProduceResponse], waiting: "list[_Waiting]", request: ProduceRequest, context: Context
) -> ProduceResponse | Awaitable[ProduceResponse] | None:
    if waiting:
        return _wait(replies, waiting, request.timeout_ms, context.broker.loop)
    if request.acks != 0:
        return ProduceResponse(responses=replies)
    for refused in (each for topic in replies for each in topic.partition_responses if each.error_code):
        raise HangUp(f"a Produce with acks=0 failed: {refused.error_message}")
    return None


def _copied(topic: TopicProduceData) -> TopicProduceData:
    """The same with records of its own: those that came are in a buffer that the next request will use."""
    return TopicProduceData(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_data=[
            PartitionProduceData(
                index=each.index, records=None if each.records is None else bytearray(each.records)
            )
            for each in topic.partition_data
        ],
    )


async def _check_and_answer(
    topics: list[TopicProduceData],
    replies: list[TopicProduceResponse],
    waiting: "list[_Waiting]",
    request: ProduceRequest,
    context: Context,
) -> Reply:
    """Look at the schemas of every batch, partition by partition, and append those that are right."""
    appended = await asyncio.gather(
        *(
            _check_and_append(_name(topic, context), data, request.acks, context, waiting)
            for topic in topics
            for data in topic.partition_data
        )
    )
    answers = iter(appended)
    replies += [
        TopicProduceResponse(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[next(answers) for _ in topic.partition_data],
        )
        for topic in topics
    ]
    answer = _answer(replies, waiting, request, context)
    return await answer if inspect.isawaitable(answer) else answer


async def _check_and_append(
    topic: str, data: PartitionProduceData, acks: int, context: Context, waiting: "list[_Waiting]"
) -> PartitionProduceResponse:
    schemas = context.broker.schemas
    batch = data.records or b""
    try:
        schemas.hold(len(batch))
    except KafkaError as error:
        return _refused(data.index, error)
    try:
        async with schemas.turn(topic, data.index):
            refusal = await schemas.refusal(topic, batch)
            return _append(topic, data, acks, context, waiting, refusal=refusal)
    finally:
        schemas.let_go(len(batch))


def _name(topic: TopicProduceData, context: Context) -> str:
    if context.version < BY_ID:
        return topic.name
    return context.broker.image.topic_names.get(topic.topic_id, "")


class _Waiting(NamedTuple):
    """A batch that is in the log and not committed yet, with the reply that says it is."""

    done: "asyncio.Future[KafkaError | None]"
    reply: PartitionProduceResponse


async def _wait(
    replies: list[TopicProduceResponse],
    waiting: list[_Waiting],
    timeout_ms: int,
    loop: asyncio.AbstractEventLoop,
) -> ProduceResponse:
    """Say what became of each batch, when that is known or the client's patience ends."""
    timer = loop.call_later(max(timeout_ms, 0) / 1000, _give_up, waiting)
    try:
        errors = [(each.reply, await each.done) for each in waiting]
    finally:
        timer.cancel()
    refused = {id(reply): _refused(reply.index, error) for reply, error in errors if error is not None}
    return _said(replies, refused) if refused else ProduceResponse(responses=replies)


def _give_up(waiting: list[_Waiting]) -> None:
    late = TimedOut("not all replicas in sync have it")
    for each in waiting:
        if not each.done.done():
            each.done.set_result(late)


def _said(
    replies: list[TopicProduceResponse], refused: dict[int, PartitionProduceResponse]
) -> ProduceResponse:
    """The replies with those in `refused` in place of what was hoped for."""
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
    topic: TopicProduceData, acks: int, context: Context, waiting: list[_Waiting]
) -> TopicProduceResponse:
    name, problem = topic.name, None
    if context.version >= BY_ID:
        try:
            name = context.broker.topic_name(topic.topic_id)
        except UnknownTopicId as error:
            problem = error
    replies = [
        _append(name, data, acks, context, waiting) if problem is None else _refused(data.index, problem)
        for data in topic.partition_data
    ]
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)


def _append(
    topic: str,
    data: PartitionProduceData,
    acks: int,
    context: Context,
    waiting: list[_Waiting],
    *,
    refusal: KafkaError | None = None,
) -> PartitionProduceResponse:
    try:
        if refusal is not None:
            raise refusal
        if acks not in _ACKS:
            raise InvalidRequiredAcks(f"acks={acks} is not one of 0, 1 and -1 (all)")
        if data.records is None:
            raise InvalidRequest(f"{topic}-{data.index} comes without records")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is the broker's own: clients can read it, and not write to it")
        partition = context.broker.partition(topic, data.index)
        if acks != _ALL:  # that is answered when others have the record, who would not follow a leader of old
            context.broker.ensure_lease(partition)
        appended = partition.append(data.records, all_in_sync=acks == _ALL)
    except FAILURES as error:
        if isinstance(error, StorageError):
            context.broker.disk_failed()
        context.broker.meters.of(topic).failed_produces += 1
        return _refused(data.index, error)
    reply = PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )
    if acks == _ALL:
        context.broker.schemas.written(topic)
        done = partition.committed()  # a duplicate waits for its first write, if that is not committed
        if done is not None:
            waiting.append(_Waiting(done, reply))
    return reply


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


def _refused(index: int, error: Failure) -> PartitionProduceResponse:
    bad = error.records if isinstance(error, WrongSchema) else [(0, str(error))]  # 0: the whole batch
    return PartitionProduceResponse(
        index=index,
        error_code=error_code(error),
        base_offset=-1,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=place, batch_index_error_message=why) for place, why in bad
        ]
        if isinstance(error, InvalidRecord)
        else (),
        error_message=str(error),
    )
