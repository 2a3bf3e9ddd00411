"""DescribeLogDirs (key 35), v1-v5.

Behaviour: returns the log directory of this broker, the size of the requested partitions, and of the disk.
Versions:  v2 flexible; v3 top-level error; v4 total and usable bytes of the disk; v5 cordoned directories
           (never any).
"""

import shutil
from collections.abc import Iterable

from headrace.broker.replicas.partition import Partition
from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.requirements import on_cluster
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
    partitions: Iterable[Partition] = tuple(broker.partitions.values())
    if request.topics is not None:
        requested: dict[TopicPartition, Partition] = {}
        for topic in request.topics:
            yield
            for number, index in enumerate(topic.partitions):
                if not number % STEP:
                    yield
                id_ = TopicPartition(topic.topic, index)
                if id_ in broker.partitions:
                    requested[id_] = broker.partitions[id_]
        partitions = requested.values()
    by_topic: dict[str, list[DescribeLogDirsPartition]] = {}
    for number, partition in enumerate(partitions):
        if not number % STEP:
            yield
        by_topic.setdefault(partition.id.topic, []).append(_partition(partition))
    disk = shutil.disk_usage(broker.logs.path)
    result = DescribeLogDirsResult(
        log_dir=str(broker.logs.path.resolve()),
        topics=[
            DescribeLogDirsTopic(name=name, partitions=described) for name, described in by_topic.items()
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
