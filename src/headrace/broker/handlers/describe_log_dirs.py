"""DescribeLogDirs (key 35), v1-v5.

Behaviour: the one log directory of this broker, with the size of every partition asked for, and of its disk.
Versions:  v2 flexible; v3 an error of its own; v4 the disk; v5 cordoned directories (there are none).
"""

import shutil
from collections.abc import Iterable

from headrace.broker.dispatch import Context, handles
from headrace.broker.partition import Partition
from headrace.broker.requirements import on_cluster
from headrace.broker.slices import STEP, Steps
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.DESCRIBE_LOG_DIRS, range(1, 6), requires=on_cluster(Operation.DESCRIBE))
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> Steps[DescribeLogDirsResponse]:
    broker = context.broker
    found: Iterable[Partition] = tuple(broker.partitions.values())
    if request.topics is not None:
        asked: dict[TopicPartition, Partition] = {}
        for topic in request.topics:
            for number, index in enumerate(topic.partitions):
                if not number % STEP:
                    yield
                id_ = TopicPartition(topic.topic, index)
                if id_ in broker.partitions:
                    asked[id_] = broker.partitions[id_]
        found = asked.values()
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for number, partition in enumerate(found):
        if not number % STEP:
            yield
        by_topic.setdefault(partition.id.topic, []).append(_partition(partition))
    disk = shutil.disk_usage(broker.logs.path)
    result = DescribeLogDirsResult(
        log_dir=str(broker.logs.path.resolve()),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=partitions) for name, partitions in by_topic.items()
        ],
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )
    return DescribeLogDirsResponse(results=[result])


def _partition(partition: Partition) -> DescribeLogDirsPartition:
    return DescribeLogDirsPartition(
        partition_index=partition.id.partition,
        partition_size=partition.log.size,
        offset_lag=0,
        is_future_key=False,
    )
