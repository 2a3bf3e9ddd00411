"""DescribeLogDirs (key 35), v1-v5.

Behaviour: the one log directory of this broker, with the size of every partition asked for, and of its disk.
Versions:  v2 flexible; v3 an error of its own; v4 the disk; v5 cordoned directories (there are none).
"""

import shutil
from collections import defaultdict

from headrace.broker.dispatch import Context, handles
from headrace.broker.partition import Partition
from headrace.protocol.schema.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from headrace.protocol.schema.index import ApiKey


@handles(ApiKey.DESCRIBE_LOG_DIRS, range(1, 6))
def describe_log_dirs(request: DescribeLogDirsRequest, context: Context) -> DescribeLogDirsResponse:
    broker = context.broker
    wanted = None
    if request.topics is not None:
        wanted = {(topic.topic, index) for topic in request.topics for index in topic.partitions}
    by_topic: dict[str, list[Partition]] = defaultdict(list)
    for id_, partition in sorted(broker.partitions.items()):
        if wanted is None or id_ in wanted:
            by_topic[id_.topic].append(partition)
    disk = shutil.disk_usage(broker.logs.path)
    result = DescribeLogDirsResult(
        log_dir=str(broker.logs.path.resolve()),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=[_partition(entry) for entry in partitions])
            for name, partitions in by_topic.items()
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
