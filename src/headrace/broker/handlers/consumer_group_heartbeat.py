"""ConsumerGroupHeartbeat (key 68), v0-v1.

Behaviour: joins a consumer group (member epoch 0), extends the session, reconciles the assignment, and leaves
           the group (-1; -2 for a static member that leaves temporarily). A classic group is upgraded when a
           member joins with this API.
Versions:  v1 RE2 regular expressions, and member ids that the client generates.
"""

from typing import Final

from headrace.broker.coordinators.replies import respond
from headrace.broker.handlers.join_group import client_of
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_group, on_topics
from headrace.broker.results import Result
from headrace.broker.slices import STEP, Steps
from headrace.broker.translate import FAILURES, Failure, error_fields
from headrace.coordinators.errors import InvalidRegularExpression
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.consumer_protocol import Heartbeat, HeartbeatResult
from headrace.coordinators.group.errors import InvalidGroupRequest
from headrace.protocol.schema import consumer_group_heartbeat as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_CLIENT_GENERATED_ID = 1
_DESCRIBE_TOPIC: Final = on_topics(Operation.DESCRIBE)


@handles(ApiKey.CONSUMER_GROUP_HEARTBEAT, range(2), requires=(on_group(Operation.READ), _DESCRIBE_TOPIC))
def consumer_group_heartbeat(request: api.ConsumerGroupHeartbeatRequest, context: Context) -> Steps[Result]:
    topics = request.subscribed_topic_names
    owned = {}
    for number, owned_topic in enumerate(request.topic_partitions or ()):
        if not number % STEP:
            yield
        owned[owned_topic.topic_id] = frozenset(owned_topic.partitions)
    beat = Heartbeat(
        group_id=request.group_id,
        member_id=request.member_id,
        epoch=request.member_epoch,
        client=client_of(context),
        instance_id=request.instance_id,
        rack_id=request.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=None if topics is None else frozenset(topics),
        expression=request.subscribed_topic_regex,
        assignor=request.server_assignor,
        owned=None if request.topic_partitions is None else owned,
    )
    try:
        if context.version >= _CLIENT_GENERATED_ID and not beat.member_id.strip():
            raise InvalidGroupRequest("member_id cannot be empty")
        for number, topic in enumerate(beat.topics or ()):
            if not number % STEP:
                yield
            context.require(_DESCRIBE_TOPIC, topic)
        yield from _match_expressions(beat, context)
        reply = context.broker.groups.shard(beat.group_id).write(
            lambda machine, now_ms: machine.consumer_heartbeat(beat, now_ms)
        )
    except FAILURES as error:
        return Result(_refused(error))
    return respond(reply, _response, _refused)


def _refused(error: Failure) -> api.ConsumerGroupHeartbeatResponse:
    return api.ConsumerGroupHeartbeatResponse(**error_fields(error), member_epoch=0, heartbeat_interval_ms=0)


def _response(answer: HeartbeatResult) -> api.ConsumerGroupHeartbeatResponse:
    return api.ConsumerGroupHeartbeatResponse(
        member_id=answer.member_id,
        member_epoch=answer.epoch,
        heartbeat_interval_ms=answer.heartbeat_interval_ms,
        assignment=None
        if answer.assignment is None
        else api.Assignment(
            topic_partitions=[
                api.TopicPartitions(topic_id=topic_id, partitions=sorted(partitions))
                for topic_id, partitions in answer.assignment.items()
            ]
        ),
    )


def _match_expressions(beat: Heartbeat, context: Context) -> Steps[None]:
    """Match regular expressions against topic names in steps: there may be many thousands of topics."""
    coordinator = context.broker.groups.shard(beat.group_id).machine
    context.broker.groups.update_topics(coordinator)
    topics, group = coordinator.topics, coordinator.groups.get(beat.group_id)
    expressions = {beat.expression} if beat.expression else set()
    if isinstance(group, ConsumerGroup) and group.seen_topics != topics.version:
        expressions |= group.expressions()
    for expression in expressions:
        try:
            yield from topics.match(expression)
        except InvalidRegularExpression:
            return  # the coordinator refuses the request, unless it finds another error first
