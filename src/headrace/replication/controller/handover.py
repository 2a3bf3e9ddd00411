"""Leaders that are alive are replaced only with their consent.

A leader whose registration exists may be serving clients, whether the controller can reach it or not. Before
another replica is written as the leader, the current leader gets a StepDown request: it rejects writes from
then on, waits until the next leader has every record, and agrees. Without its consent nothing changes.
"""

import asyncio
import logging
from collections.abc import Mapping

from headrace.protocol.between_brokers.step_down import StepDownPartition, StepDownRequest
from headrace.protocol.ids import TopicPartition
from headrace.protocol.peers import PeerGone, UnsupportedByPeer
from headrace.replication.controller.channel import Channel
from headrace.replication.controller.model import Changes, ClusterModel

_VERSIONS = range(1)
_CATCH_UP_MS = 1000  # how long the old leader waits for the next one to catch up
_TIMEOUT_S = 1.5

logger = logging.getLogger(__name__)


class Handover:
    """Asks leaders to step down, and remembers those that may have done so in vain."""

    def __init__(self, model: ClusterModel, controller_epoch: int, channels: Mapping[int, Channel]) -> None:
        self._model = model
        self._controller_epoch = controller_epoch
        self._channels = channels
        self.unconfirmed: set[TopicPartition] = set()
        """Partitions whose leaders may have stepped down for a change that was not written."""

    async def with_consent(self, changes: Changes) -> tuple[Changes, set[TopicPartition]]:
        """Return the changes that may be written, and the partitions whose leaders have not stepped down.

        A leader whose response is lost may have stepped down: its state is written again unchanged, and with
        that later partition epoch the leader accepts writes again.
        """
        live = self._model.live
        leaders: dict[int, list[TopicPartition]] = {}
        for key, wanted in changes.items():
            leader = self._model.find(key).leader
            if leader in live and wanted.leader != leader:
                leaders.setdefault(leader, []).append(key)
        if not leaders:
            return changes, set()
        answers = await asyncio.gather(
            *(self.ask_to_step_down(leader, keys, changes) for leader, keys in leaders.items())
        )
        allowed = dict(changes)
        refused: set[TopicPartition] = set()
        for (leader, keys), agreed in zip(leaders.items(), answers, strict=True):
            for key in keys:
                if agreed is None:
                    allowed[key] = self._model.find(key)
                elif key not in agreed:
                    del allowed[key]
                if agreed is None or key not in agreed:
                    refused.add(key)
                    logger.info("%s: the leader, broker %d, has not stepped down", key, leader)
        return allowed, refused

    async def ask_to_step_down(
        self, leader: int, keys: list[TopicPartition], changes: Changes
    ) -> set[TopicPartition] | None:
        """Return the partitions that the leader agrees to hand over; None if its response is lost."""
        channel = self._channels.get(leader)
        if channel is None or not channel.is_open:
            return set()
        request = StepDownRequest(
            controller_epoch=self._controller_epoch,
            broker_epoch=self._model.members[leader].epoch,
            timeout_ms=_CATCH_UP_MS,
            partitions=[
                StepDownPartition(
                    topic_name=key.topic,
                    partition_index=key.partition,
                    partition_epoch=self._model.find(key).version,
                    next_leader=changes[key].leader,
                )
                for key in keys
            ],
        )
        self.unconfirmed.update(keys)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                response = await channel.ask(request, _VERSIONS)
        except UnsupportedByPeer as error:
            logger.info("broker %d cannot be asked to step down: %s", leader, error)
            self.unconfirmed.difference_update(keys)
            return set()
        except (PeerGone, TimeoutError) as error:
            logger.info("broker %d has not responded to StepDown: %s", leader, error or "timed out")
            return None
        agreed = {TopicPartition(each.topic_name, each.partition_index) for each in response.agreed}
        self.unconfirmed.difference_update(set(keys) - agreed)
        return agreed
