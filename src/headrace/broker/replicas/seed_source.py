"""The source of a seed: links the segments of a replica for a new replica on another broker of the node."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from headrace.broker.errors import SeedRefused
from headrace.broker.image import ClusterImage
from headrace.broker.replicas.partition import Partition
from headrace.protocol.between_brokers.seed_replica import SeedReplicaRequest
from headrace.protocol.ids import TopicPartition
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity
from headrace.storage.seed import Seed

_POLL_S = 0.005
_COMMITTED_S = 1.0  # for the high watermark to reach the end of the segment that was just closed


async def seed_for(
    request: SeedReplicaRequest,
    *,
    node: str | None,
    image: ClusterImage,
    partitions: Mapping[TopicPartition, Partition],
    logs: LogDirectory,
) -> Seed:
    """Link the segments of a partition into the sender's staging directory; return their offsets.

    SeedRefused is raised if the sender is not a broker of this node, or if the log has changed meanwhile.
    """
    sender = image.brokers.get(request.broker_id)
    if node is None or sender is None or sender.node != node:
        raise SeedRefused(
            f"broker {request.broker_id} is not a live broker of node {node} (POLICY_VIOLATION)"
        )
    id_ = TopicPartition(request.topic_name, request.partition_index)
    partition = partitions.get(id_)
    if partition is None or partition.topic_id != request.topic_id:
        raise SeedRefused(
            f"{id_} has no replica here with topic id {request.topic_id.hex()} (POLICY_VIOLATION)"
        )
    await _close_active_segment(partition)
    if partitions.get(id_) is not partition:
        raise SeedRefused(f"{id_} was removed meanwhile (POLICY_VIOLATION)")
    plan = logs.plan_seed(id_, partition.high_watermark)
    if not plan.seed.is_empty:
        owner = Identity(request.broker_id, image.cluster_id)
        await asyncio.to_thread(plan.link_into, Path(request.staging_directory), owner)
        if plan.is_stale:
            raise SeedRefused(f"{id_} was truncated or compacted meanwhile (POLICY_VIOLATION)")
    return plan.seed


async def _close_active_segment(partition: Partition) -> None:
    """Start a new segment, and wait until everything before it is committed, but not for long."""
    if not partition.log.has_files:
        return
    partition.log.roll()
    end = partition.log.log_end_offset
    try:
        async with asyncio.timeout(_COMMITTED_S):
            while partition.high_watermark < end:  # noqa: ASYNC110  it has no event
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return  # the closed segment is fetched from the leader
