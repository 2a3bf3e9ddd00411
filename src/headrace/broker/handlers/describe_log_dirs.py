"""DescribeLogDirs (key 35), v1-v5.

Behaviour: returns the log directory of this broker, the size of the requested partitions, and of the disk.
Versions:  v2 flexible; v3 top-level error; v4 total and usable bytes of the disk; v5 cordoned directories
           (never any).
"""

import shutil
from collections.abc import Iterable

from headrace.broker.requests.dispatch import Context, handles
from headrace.broker.requests.repeats import partitions_once
from headrace.broker.requests.requirements import on_cluster
from headrace.broker.slices import STEP, Steps
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema import describe_log_dirs as api
from headrace.protocol.schema.index import ApiKey
from headrace.security.authorization import Operation


@handles(ApiKey.DESCRIBE_LOG_DIRS, range(1, 6), requires=on_cluster(Operation.DESCRIBE))
def describe_log_dirs(
    request: api.DescribeLogDirsRequest, context: Context
) -> Steps[api.DescribeLogDirsResponse]:
    broker = context.broker
    ids: Iterable[TopicPartition] = tuple(broker.partitions)
    if request.topics is not None:
        ids = yield from partitions_once(
            ((topic.topic, topic.partitions) for topic in request.topics), broker.partitions.__contains__
        )
    by_topic: dict[str, list[api.DescribeLogDirsPartition]] = {}
    for number, id_ in enumerate(ids):
        if not number % STEP:
            yield
        partition = broker.partitions.get(id_)
        if partition is not None:  # it may have been deleted meanwhile
            by_topic.setdefault(id_.topic, []).append(
                api.DescribeLogDirsPartition(
                    partition_index=id_.partition,
                    partition_size=partition.log.size,
                    offset_lag=0,
                    is_future_key=False,
                )
            )
    disk = shutil.disk_usage(broker.logs.path)
    result = api.DescribeLogDirsResult(
        log_dir=str(broker.logs.path.resolve()),
        topics=[
            api.DescribeLogDirsTopic(name=name, partitions=described) for name, described in by_topic.items()
        ],
        total_bytes=disk.total,
        usable_bytes=disk.free,
    )
    return api.DescribeLogDirsResponse(results=[result])
