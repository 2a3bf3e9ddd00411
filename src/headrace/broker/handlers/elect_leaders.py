"""ElectLeaders (key 43), v0-v2.

Behaviour: the preferred replica leads again, if it is in sync (type 0); or any live replica does, at the
           price of records that it does not have, where nobody leads (type 1). Without partitions, all
           that need it.
Versions:  v1 unclean elections; v2 flexible.
"""

from collections.abc import Iterable

from headrace.broker.dispatch import Context, handles
from headrace.broker.errors import NotController
from headrace.broker.requirements import on_cluster
from headrace.broker.slices import STEP, Turns
from headrace.broker.translate import FAILURES, error_code, error_message
from headrace.controller import model
from headrace.controller.model import Changes, ClusterModel, Refused
from headrace.controller.runner import TOLD_S, Controller
from headrace.controller.runner import NotController as Replaced
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
    TopicPartitions,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

_PREFERRED, _UNCLEAN = 0, 1
_PREFERRED_CODES = {
    model.UNKNOWN_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    model.NOT_NEEDED: ErrorCode.ELECTION_NOT_NEEDED,
    model.NOT_AVAILABLE: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
}
_UNCLEAN_CODES = _PREFERRED_CODES | {model.NOT_AVAILABLE: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE}


@handles(ApiKey.ELECT_LEADERS, range(3), requires=on_cluster(Operation.ALTER), on_controller=True)
async def elect_leaders(request: ElectLeadersRequest, context: Context) -> ElectLeadersResponse:
    controller = context.broker.controller
    if controller is None or request.election_type not in {_PREFERRED, _UNCLEAN}:
        code = ErrorCode.NOT_CONTROLLER if controller is None else ErrorCode.INVALID_REQUEST
        return ElectLeadersResponse(error_code=code, replica_election_results=[])
    unclean = request.election_type == _UNCLEAN
    keys: Iterable[TopicPartition]
    if request.topic_partitions is None:
        keys = _all_that_need_it(controller.model, unclean=unclean)
    else:
        keys = await _named(request.topic_partitions)
    results: dict[str, list[PartitionResult]] = {}
    turns = Turns()
    try:
        for key in keys:
            results.setdefault(key.topic, []).append(await _elect(controller, key, unclean=unclean))
            await turns.next()
    except (Replaced, NotController):
        return ElectLeadersResponse(error_code=ErrorCode.NOT_CONTROLLER, replica_election_results=[])
    except FAILURES as error:
        return ElectLeadersResponse(error_code=error_code(error), replica_election_results=[])
    await controller.told(min(request.timeout_ms / 1000, TOLD_S))
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=each) for topic, each in results.items()
        ]
    )


async def _named(topics: Iterable[TopicPartitions]) -> Iterable[TopicPartition]:
    """The partitions of a request, each once."""
    keys: dict[TopicPartition, None] = {}
    turns = Turns()
    for topic in topics:
        for number, index in enumerate(topic.partitions):
            if not number % STEP:
                await turns.next()
            keys[TopicPartition(topic.topic, index)] = None
    return keys


def _all_that_need_it(cluster: ClusterModel, *, unclean: bool) -> list[TopicPartition]:
    if not unclean:
        return cluster.unbalanced()
    return [key for key, partition in cluster.items() if partition.leader not in cluster.live]


async def _elect(controller: Controller, key: TopicPartition, *, unclean: bool) -> PartitionResult:
    def decide(cluster: ClusterModel) -> Changes:
        return cluster.force(key) if unclean else cluster.prefer(key)

    try:
        await controller.change(decide)
    except Refused as error:
        codes = _UNCLEAN_CODES if unclean else _PREFERRED_CODES
        return PartitionResult(
            partition_id=key.partition, error_code=codes[error.reason], error_message=error_message(error)
        )
    return PartitionResult(partition_id=key.partition)
