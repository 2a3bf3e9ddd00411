"""Stepping down: a leader rejects writes, and agrees to be replaced when the next leader has every record."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headrace.broker.replicas.partition import Partition, SteppedDown
from headrace.protocol.between_brokers.step_down import StepDownPartition
from headrace.protocol.ids import TopicPartition

_POLL_S = 0.005


class _Waiting(NamedTuple):
    next_leader: int
    promise: SteppedDown


async def step_down(
    partitions: Mapping[TopicPartition, Partition],
    requested: Sequence[StepDownPartition],
    *,
    controller_epoch: int,
    timeout_s: float,
) -> list[Partition]:
    """Reject writes to the requested partitions; return those whose next leader has caught up.

    Other brokers may lead these from then on. The rest accept writes again before this returns.
    """
    waiting: dict[Partition, _Waiting] = {}
    for each in requested:
        partition = partitions.get(TopicPartition(each.topic_name, each.partition_index))
        if partition is not None:
            promise = partition.step_down(controller_epoch, each.partition_epoch)
            if promise is not None:
                waiting[partition] = _Waiting(each.next_leader, promise)
    agreed: list[Partition] = []
    try:
        async with asyncio.timeout(timeout_s):
            while True:
                agreed += _take_caught_up(waiting)
                if not waiting:
                    break
                await asyncio.sleep(_POLL_S)
    except TimeoutError:
        return agreed
    finally:
        for partition, (_, promise) in waiting.items():
            partition.keep_leading(promise)
    return agreed


def _take_caught_up(waiting: dict[Partition, _Waiting]) -> list[Partition]:
    """Remove and return the partitions whose next leader has every record."""
    found = [each for each, (next_leader, _) in waiting.items() if each.has_all_records(next_leader)]
    for partition in found:
        del waiting[partition]
    return found
