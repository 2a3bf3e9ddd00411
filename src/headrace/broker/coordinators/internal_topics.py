"""Topics that coordinators keep their records in: created when they are first needed."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, NamedTuple, Protocol

from headrace.broker.errors import RefusedByController
from headrace.broker.image import ClusterImage
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.translate import FAILURES
from headrace.coordinators.errors import CoordinatorNotAvailable
from headrace.protocol.errors import ErrorCode
from headrace.protocol.locations import nodes
from headrace.replication.controller.runner import Controller
from headrace.storage.topics import INTERNAL_TOPICS

_REPLICAS: Final = 3  # unless a setting says otherwise or there are fewer nodes
_CONFIGS: Final = {"cleanup.policy": "compact", "compression.type": "producer"}

logger = logging.getLogger(__name__)


class InternalTopicSettings(NamedTuple):
    """An internal topic, and the names of the settings with which it is created."""

    name: str
    partitions: str
    replicas: str
    segment_bytes: str
    min_isr: str | None = None


class CreateTopic(Protocol):
    def __call__(
        self, name: str, *, partitions: int, replicas: int, configs: Mapping[str, str]
    ) -> Awaitable[None]: ...


class InternalTopic:
    """One such topic. `config` returns the settings that are in force now.

    `warned_of` are the numbers of replicas that were logged as too few: once each, not for every topic.
    """

    def __init__(
        self,
        settings: InternalTopicSettings,
        *,
        config: Callable[[], BrokerConfig],
        image: ClusterImage,
        create_topic: CreateTopic,
        warned_of: set[int],
    ) -> None:
        self.name = settings.name
        self._settings = settings
        self._config = config
        self._image = image
        self._create_topic = create_topic
        self._warned_of = warned_of

    async def ensure(self) -> None:
        """Create the topic unless it exists; raise CoordinatorNotAvailable if that is not possible now."""
        if self.name in self._image.topics:
            return
        config = self._config()
        replicas = config.integer(self._settings.replicas)
        if self._settings.replicas not in config.given:
            replicas = min(_REPLICAS, len(nodes(self._image.locations)))
            if replicas < _REPLICAS and replicas not in self._warned_of:
                self._warned_of.add(replicas)
                logger.warning(
                    "internal topics (%s) are created with %d of %d replicas, because there are no more "
                    "nodes; they get the others when brokers join",
                    ", ".join(sorted(INTERNAL_TOPICS)),
                    replicas,
                    _REPLICAS,
                )
        configs = {**_CONFIGS, "segment.bytes": str(config.integer(self._settings.segment_bytes))}
        if self._settings.min_isr is not None:
            configs["min.insync.replicas"] = str(config.integer(self._settings.min_isr))
            configs["unclean.leader.election.enable"] = "false"
        partitions = config.integer(self._settings.partitions)
        try:
            await self._create_topic(self.name, partitions=partitions, replicas=replicas, configs=configs)
        except RefusedByController as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                raise CoordinatorNotAvailable(f"{self.name} cannot be created: {error}") from error
            logger.debug("another broker has created %s", self.name)

    async def raise_replicas(self, controller: Controller) -> None:
        """Add the replicas that the topic could not have when it was created: brokers have joined.

        Another replica on the same node would not survive its failure, and would have to move later.
        """
        if self._settings.replicas not in self._config().given:
            try:
                count = min(_REPLICAS, len(nodes(controller.model.locations)))
                await controller.raise_replicas(self.name, count)
            except FAILURES as error:
                logger.warning("%s did not get more replicas: %s", self.name, error)
