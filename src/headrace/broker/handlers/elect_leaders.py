"""ElectLeaders (key 43), v0-v2.

Behaviour: type 0 elects the preferred replica, if it is in the ISR. Type 1 elects any live replica of a
           partition without a leader, which loses the records that this replica does not have. Without
           partitions in the request, all partitions that need an election.
Versions:  v1 unclean elections; v2 flexible.
"""

import asyncio
from collections.abc import Iterable
from typing import Final

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import partitions_once
from headrace.broker.slices import Turns, in_slices
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import LeaderNotSteppedDown, NotController
from headrace.protocol.schema import elect_leaders as api
from headrace.protocol.schema.index import ApiKey
from headrace.replication.controller.runner import UPDATE_WAIT_S, Controller
from headrace.security import authorization

_PREFERRED, _UNCLEAN = 0, 1
_ALTER: Final = authorization.Permission(authorization.Operation.ALTER, authorization.ResourceType.CLUSTER)


@handles(ApiKey.ELECT_LEADERS, range(3), requires=_ALTER, on_controller=True)
async def elect_leaders(request: api.ElectLeadersRequest, context: Context) -> api.ElectLeadersResponse:
    if not context.may(_ALTER):
        return await _refused(request, context.denied(_ALTER, authorization.CLUSTER_NAME))
    controller = context.broker.controller
    if controller is None or request.election_type not in {_PREFERRED, _UNCLEAN}:
        code = ErrorCode.NOT_CONTROLLER if controller is None else ErrorCode.INVALID_REQUEST
        return api.ElectLeadersResponse(error_code=code, replica_election_results=[])
    unclean = request.election_type == _UNCLEAN
    keys: Iterable[TopicPartition]
    if request.topic_partitions is None:
        keys, model = list[TopicPartition](), controller.model
        for some in model.parts(None):
            keys += model.leaderless(some) if unclean else model.unbalanced(some)
            await asyncio.sleep(0)  # other requests are served in between
    else:
        keys = await _named(request.topic_partitions)
    results: dict[str, list[api.PartitionResult]] = {}
    turns = Turns()
    try:
        for key in keys:
            results.setdefault(key.topic, []).append(await _elect(controller, key, unclean=unclean))
            await turns.next()
    except FAILURES as error:
        return api.ElectLeadersResponse(error_code=error_code(error), replica_election_results=[])
    await controller.propagated(min(request.timeout_ms / 1000, UPDATE_WAIT_S))
    return api.ElectLeadersResponse(replica_election_results=_by_topic(results))


async def _refused(
    request: api.ElectLeadersRequest, error: authorization.AuthorizationFailed
) -> api.ElectLeadersResponse:
    """Return a response with the error at its top and, for v0, at each partition."""
    results: dict[str, list[api.PartitionResult]] = {}
    turns = Turns()
    for key in await _named(request.topic_partitions or ()):
        result = api.PartitionResult(partition_id=key.partition, error_code=error.code)
        results.setdefault(key.topic, []).append(result)
        await turns.next()
    return api.ElectLeadersResponse(error_code=error.code, replica_election_results=_by_topic(results))


def _by_topic(results: dict[str, list[api.PartitionResult]]) -> list[api.ReplicaElectionResult]:
    return [api.ReplicaElectionResult(topic=topic, partition_result=each) for topic, each in results.items()]


async def _named(topics: Iterable[api.TopicPartitions]) -> Iterable[TopicPartition]:
    return await in_slices(partitions_once((topic.topic, topic.partitions) for topic in topics))


async def _elect(controller: Controller, key: TopicPartition, *, unclean: bool) -> api.PartitionResult:
    try:
        await controller.change(
            lambda cluster: cluster.elect_unclean(key) if unclean else cluster.prefer(key)
        )
    except NotController:
        raise
    except KafkaError as error:
        code = error.code
        if isinstance(error, LeaderNotSteppedDown):
            code = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
        return api.PartitionResult(
            partition_id=key.partition, error_code=code, error_message=error_message(error)
        )
    return api.PartitionResult(partition_id=key.partition)
