"""AlterReplicaLogDirs (key 34), v1-v2.

Behaviour: a broker has one log directory, so a replica can only be moved to where it is. Another directory is
           answered with LOG_DIR_NOT_FOUND, a partition that is not here with REPLICA_NOT_AVAILABLE.
Versions:  v2 flexible.
"""

import asyncio
from collections.abc import Iterator

from headrace.broker.dispatch import Context, HangUp, handles
from headrace.broker.errors import NotLeader
from headrace.broker.requirements import on_cluster
from headrace.broker.translate import FAILURES, error_code
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation

MAX_PARTITIONS = 100_000  # of one request: a broker does not have so many
_AT_A_TIME = 1_000  # partitions, before others are served


@handles(ApiKey.ALTER_REPLICA_LOG_DIRS, range(1, 3), requires=on_cluster(Operation.ALTER))
async def alter_replica_log_dirs(
    request: AlterReplicaLogDirsRequest, context: Context
) -> AlterReplicaLogDirsResponse:
    if sum(len(topic.partitions) for each in request.dirs for topic in each.topics) > MAX_PARTITIONS:
        raise HangUp(f"AlterReplicaLogDirs names more than {MAX_PARTITIONS} partitions")
    path = context.broker.logs.path
    here = {str(path), str(path.resolve())}
    answers: dict[str, dict[int, ErrorCode]] = {}  # of a partition that is named twice, the last counts
    for number, (directory, topic, partition) in enumerate(_moves(request)):
        found = _find(topic, partition, context) if directory in here else ErrorCode.LOG_DIR_NOT_FOUND
        answers.setdefault(topic, {})[partition] = found
        if number % _AT_A_TIME == 0:
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
            for topic, partitions in answers.items()
        ]
    )


def _moves(request: AlterReplicaLogDirsRequest) -> Iterator[tuple[str, str, int]]:
    for directory in request.dirs:
        for topic in directory.topics:
            for partition in topic.partitions:
                yield directory.path, topic.name, partition


def _find(topic: str, partition: int, context: Context) -> ErrorCode:
    """Return NONE if the replica is here, which is where it is to be."""
    try:
        context.broker.partition(topic, partition)
    except NotLeader:  # Kafka keeps the older code for this API
        return ErrorCode.REPLICA_NOT_AVAILABLE
    except FAILURES as error:
        return error_code(error)
    return ErrorCode.NONE
