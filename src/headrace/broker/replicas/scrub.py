"""The scrub: closed segments are read slowly in the background, to find damage before a consumer does."""

import asyncio
import random
from collections.abc import Callable, Mapping

from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.repairs import check_of
from headrace.broker.settings.config import BrokerConfig
from headrace.protocol.ids import TopicPartition


class Scrub:
    """Checks the closed segments of all partitions, in threads. What it suspects is for `Repairs`."""

    def __init__(
        self, partitions: Mapping[TopicPartition, Partition], *, config: Callable[[], BrokerConfig]
    ) -> None:
        self._partitions = partitions
        self._config = config

    @property
    def _bytes_per_second(self) -> float:
        return self._config().number("log.scrub.io.max.bytes.per.second")

    async def run(self) -> None:
        """Check every closed segment, unless the rate is 0.

        The order is random: a broker that is restarted often has not always checked the same ones.
        """
        partitions = list(self._partitions.values())
        random.shuffle(partitions)
        for partition in partitions:
            for base_offset in [segment.base_offset for segment in partition.log.segments[:-1]]:
                await self._check(partition, base_offset)
            await asyncio.sleep(0)

    async def _check(self, partition: Partition, base_offset: int) -> None:
        log = partition.log
        cuts, bases = log.cuts, [segment.base_offset for segment in log.segments]
        if base_offset not in bases[:-1] or base_offset in log.damaged or log.offline is not None:
            return
        check = check_of(partition, bases.index(base_offset))
        while log.cuts == cuts and (rate := self._bytes_per_second):
            read = await asyncio.to_thread(check.step)
            if not read:
                break
            await asyncio.sleep(read / rate)
        if check.damage is not None and log.cuts == cuts:
            log.suspect_segment(base_offset)
