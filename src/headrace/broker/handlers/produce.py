"""Produce (key 0), v3-v13.

Behaviour: acks 1 and -1 are answered when the batch is in the leader's log; this broker is the only replica
           there is, so far, so both mean the same. acks=0 gets no reply, and an error closes the
           connection, so that the client looks for the leader again.
Versions:  v3 record batches, transactions; v5 log start offset; v8 per-record errors; v9 flexible; v10 new
           leaders in replies (not sent yet); v13 topics by id.
Not yet:   transactions, quotas.
"""

from headrace.broker.dispatch import Context, HangUp, handles
from headrace.broker.errors import InvalidRequest, UnknownTopicId
from headrace.broker.image import INTERNAL_TOPICS
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
from headrace.storage.errors import InvalidTopic

BY_ID = 13
_ALL = -1
_ACKS = (_ALL, 0, 1)


@handles(ApiKey.PRODUCE, range(3, 14))
def produce(request: ProduceRequest, context: Context) -> ProduceResponse | None:
    """Append every batch, in order, before returning."""
    replies = [_topic(topic, request.acks, context) for topic in request.topic_data]
    if request.acks != 0:
        return ProduceResponse(responses=replies)
    for refused in (each for topic in replies for each in topic.partition_responses if each.error_code):
        raise HangUp(f"a Produce with acks=0 failed: {refused.error_message}")
    return None


def _topic(topic: TopicProduceData, acks: int, context: Context) -> TopicProduceResponse:
    name, problem = topic.name, None
    if context.version >= BY_ID:
        try:
            name = context.broker.topic_name(topic.topic_id)
        except UnknownTopicId as error:
            problem = error
    replies = [
        _append(name, data, acks, context) if problem is None else _refused(data.index, problem)
        for data in topic.partition_data
    ]
    return TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=replies)


def _append(topic: str, data: PartitionProduceData, acks: int, context: Context) -> PartitionProduceResponse:
    try:
        if acks not in _ACKS:
            raise InvalidRequiredAcks(f"acks={acks} is not one of 0, 1 and -1 (all)")
        if data.records is None:
            raise InvalidRequest(f"{topic}-{data.index} comes without records")
        if topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"{topic} is the broker's own: clients can read it, and not write to it")
        partition = context.broker.partition(topic, data.index)
        appended = partition.append(data.records, all_in_sync=acks == _ALL)
    except FAILURES as error:
        return _refused(data.index, error)
    return PartitionProduceResponse(
        index=data.index,
        base_offset=appended.base_offset,
        log_append_time_ms=appended.log_append_time_ms,
        log_start_offset=partition.log.log_start_offset,
    )


class InvalidRequiredAcks(KafkaError):
    code = ErrorCode.INVALID_REQUIRED_ACKS


def _refused(index: int, error: Failure) -> PartitionProduceResponse:
    whole_batch = BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=str(error))
    return PartitionProduceResponse(
        index=index,
        error_code=error_code(error),
        base_offset=-1,
        record_errors=[whole_batch] if isinstance(error, InvalidRecord) else (),
        error_message=str(error),
    )
