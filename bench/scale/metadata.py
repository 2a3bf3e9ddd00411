"""What the metadata of a large cluster costs every broker: the time to apply it, and its memory."""

import asyncio
import gc
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from capacity.cluster import SimulatedCluster, Size
from capacity.receiver import Receiver, receiver
from headrace.replication.controller.updates import VERSIONS

SIZE: Final = Size(brokers=300, partitions=20_000, per_topic=20)


def constants() -> Iterator[tuple[str, str]]:
    """Iterate over the constants of the capacity model that concern every broker."""
    with tempfile.TemporaryDirectory(prefix="scale-") as name:
        first_s, again_s, used = asyncio.run(_measure(Path(name)))
    yield "every broker: memory per partition of the cluster", f"{used / SIZE.partitions:,.0f} B"
    yield "every broker: CPU per partition that it learns", f"{first_s / SIZE.partitions * 1e6:.0f} us"
    yield "every broker: CPU per partition that it knows already", f"{again_s / SIZE.partitions * 1e6:.0f} us"


async def _measure(directory: Path) -> tuple[float, float, int]:
    parts = await _whole_state()
    with receiver(directory / "timed") as broker:
        first_s, again_s = await _take(broker, parts), await _take(broker, parts)
    gc.collect()
    tracemalloc.start()
    with receiver(directory / "traced") as broker:
        before, _ = tracemalloc.get_traced_memory()
        await _take(broker, parts)
        used = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    return first_s, again_s, used


async def _whole_state() -> list[bytes]:
    """Return the encoded requests with the state of all partitions, for a broker that is not registered."""
    cluster = SimulatedCluster(SIZE)
    controller = cluster.broker(1)
    await cluster.join(controller)
    updates = controller.controller._updates  # noqa: SLF001  what the channels use
    parts = [b"".join(each.encode(VERSIONS[-1])) async for each in updates.everything(SIZE.brokers + 1)]
    cluster.stop()
    return parts


async def _take(broker: Receiver, parts: list[bytes]) -> float:
    began = time.thread_time()
    for part in parts:
        await broker.take(part)
    return time.thread_time() - began
