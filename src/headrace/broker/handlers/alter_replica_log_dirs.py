"""AlterReplicaLogDirs (key 34), v1-v2.

Behaviour: a broker has one log directory, so a replica can only be moved to its current directory. Another
           directory is answered with LOG_DIR_NOT_FOUND, a partition without a replica on this broker with
           REPLICA_NOT_AVAILABLE.
Versions:  v2 flexible.
"""

import asyncio
from collections.abc import Iterator
from typing import Final

from headrace.broker.errors import NotLeader
from headrace.broker.requests.dispatch import Context, HangUp, handles
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation, Permission, ResourceType

MAX_PARTITIONS = 100_000  # of one request; a broker does not have that many
_STEP = 1_000  # partitions, before other requests are served
_ALTER: Final = Permission(Operation.ALTER, ResourceType.CLUSTER)


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, range(1, 3), requires=_ALTER)
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context
) -> AlterReplicaLogDirsResponse:
    if sum(len(topic.partitions) for each in request.dirs for topic in each.topics) > MAX_PARTITIONS:
        raise HangUp(f"AlterReplicaLogDirs names more than {MAX_PARTITIONS} partitions")
    path = context.broker.logs.path
    own = {str(path), str(path.resolve())}
    codes: dict[str, dict[int, ErrorCode]] = {}  # if a partition is repeated, the last entry counts
    for number, (directory, topic, partition) in enumerate(_moves(request)):
        code = _check_replica(topic, partition, context, in_own=directory in own)
        codes.setdefault(topic, {})[partition] = code
        if number % _STEP == 0:
            await asyncio.sleep(0)
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name=topic,
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=partition, error_code=code)
                    for partition, code in partitions.items()
                ],
            )
            for topic, partitions in codes.items()
        ]
    )


def _moves(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[str, str, int]]:
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                yield directory.path, topic.name, partition


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
