"""AlterReplicaLogDirs (key 34), v1-v2.

Behaviour: a broker has one log directory, so a replica can only be moved to its current directory. Another
           directory is answered with LOG_DIR_NOT_FOUND, a partition without a replica on this broker with
           REPLICA_NOT_AVAILABLE.
Versions:  v2 flexible.
"""

from typing import Final

from headrace.broker.errors import NotLeader
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.slices import STEP, Steps, each
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema import alter_replica_log_dirs as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType

_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, range(1, 3), requires=_ALTER)
def alter_replica_log_dirs(
    request: api.AlterReplicaLogDirsRequest, context: Context
) -> Steps[api.AlterReplicaLogDirsResponse]:
    path = context.broker.logs.path
    own = {str(path), str(path.resolve())}
    codes: dict[str, dict[int, ErrorCode]] = {}  # if a partition is repeated, the last entry counts
    for directory in request.dirs:
        yield
        for topic in directory.topics:
            yield
            of_topic = codes.setdefault(topic.name, {})
            for number, partition in enumerate(topic.partitions):
                if not number % STEP:
                    yield
                of_topic[partition] = _check_replica(
                    topic.name, partition, context, in_own=directory.path in own
                )

    def result(partition: tuple[int, ErrorCode]) -> api.AlterReplicaLogDirPartitionResult:
        return api.AlterReplicaLogDirPartitionResult(partition_index=partition[0], error_code=partition[1])

    results = []
    for name, of_topic in codes.items():
        partitions = yield from each(result, of_topic.items())
        results.append(api.AlterReplicaLogDirTopicResult(topic_name=name, partitions=partitions))
    return api.AlterReplicaLogDirsResponse(results=results)


def _check_replica(topic: str, partition: int, context: Context, *, in_own: bool) -> ErrorCode:
    """Return NONE if this broker has a replica of the partition, and the directory is its own."""
    try:
        context.require(_ALTER)
        if not in_own:
            return ErrorCode.LOG_DIR_NOT_FOUND
        context.broker.partition(topic, partition)
    except NotLeader:  # Kafka keeps the older code for this API
        return ErrorCode.REPLICA_NOT_AVAILABLE
    except FAILURES as error:
        return error_code(error)
    return ErrorCode.NONE
