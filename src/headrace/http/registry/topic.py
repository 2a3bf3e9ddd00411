"""The schemas topic: its leader, its settings, and its creation by the first write."""

import logging
from typing import Final

from headrace.client.errors import ClientError, NoSuchTopic, Retriable, TopicExists
from headrace.client.wire.requests import NO_LEADER, addresses_by_id, leaders_of
from headrace.http.problems import Problem
from headrace.http.reach import Reach
from headrace.http.registry.leader import Leader, check_high_watermark
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse

logger = logging.getLogger(__name__)

COMPARE_AND_APPEND: Final = "headrace.append.expected.offset"
"""With this setting, a batch carries the offset that it expects, and is refused if it would get another."""

_REPLICAS: Final = 3


class SchemasTopic:
    """The topic `_schemas`, or whatever name is configured."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.name = reach.settings.schemas_topic
        self._leader: Leader | None = None
        self._checked: bytes | None = None  # id of the topic whose settings are known
        self._fault: str | None = None  # why the topic must not be written to
        self._partitions = 1
        self.compares = False

    def refresh(self) -> None:
        """Read the topic's settings again before the next use."""
        self._checked = None
        self.forget_leader()

    def forget_leader(self) -> None:
        self._leader = None

    def leader(self) -> Leader | None:
        """Return the leader, or None if the topic does not exist; raise Retriable if it has no leader now."""
        if self._leader is None:
            leader = self._find_leader(self._reach.metadata())
            if leader is not None:
                check_high_watermark(self._reach.brokers, leader, self.name)
                if leader.topic_id != self._checked:
                    self._check_settings(leader)
            self._leader = leader
        return self._leader

    def ensure_writable(self) -> None:
        """Raise a Problem if the topic would lose records some day."""
        if self._fault is not None and self._leader is not None:
            self._check_settings(self._leader)  # an operator may have fixed it
        if self._fault is not None:
            raise Problem(50001, self._fault)

    def create(self) -> None:
        """Create the topic, unless another gateway just has."""
        replicas = min(_REPLICAS, len(self._reach.metadata().brokers))
        configs = {"cleanup.policy": "compact"}
        if replicas == _REPLICAS:
            configs["min.insync.replicas"] = "2"
        try:
            self._create(replicas, configs | {COMPARE_AND_APPEND: "true"})
        except ClientError as error:
            if error.error_code != ErrorCode.INVALID_CONFIG:
                raise
            self._create(replicas, configs)  # Apache Kafka does not know the setting

    def _create(self, replicas: int, configs: dict[str, str]) -> None:
        try:
            self._reach.admin.create_topic(self.name, partitions=1, replicas=replicas, configs=configs)
        except TopicExists:
            logger.info("another gateway has created the topic %s", self.name)
        except NoSuchTopic:
            logger.info("the topic %s is created, but not every broker knows it yet", self.name)

    def _find_leader(self, metadata: MetadataResponse) -> Leader | None:
        for topic in metadata.topics:
            if topic.name == self.name:
                leader_id = leaders_of(metadata).get(TopicPartition(self.name, 0), NO_LEADER)
                address = addresses_by_id(metadata).get(leader_id)
                if address is None:
                    raise Retriable(f"the topic {self.name} has no leader (LEADER_NOT_AVAILABLE)")
                self._partitions = len(topic.partitions)
                return Leader(topic.topic_id, address)
        return None

    def _check_settings(self, leader: Leader) -> None:
        """Read the settings that matter to a writer, once for each topic id."""
        try:
            configs = {each.name: each.value for each in self._reach.topics.configs(self.name)}
        except NoSuchTopic as error:
            raise Retriable(str(error)) from error
        self._fault = None
        self._checked = leader.topic_id
        self.compares = configs.get(COMPARE_AND_APPEND) == "true"
        policy = configs.get("cleanup.policy") or ""
        if policy != "compact":
            fix = f"headrace config set topic {self.name} cleanup.policy=compact"
            self._set_fault(f"its cleanup.policy is {policy}, which would delete them; fix it with `{fix}`")
        if self._partitions > 1:
            self._set_fault(f"it has {self._partitions} partitions, expected one")
        if not self.compares:
            logger.warning(
                "the topic %s does not have %s: only one gateway, and no other registry, may write to it",
                self.name,
                COMPARE_AND_APPEND,
            )

    def _set_fault(self, why: str) -> None:
        self._fault = f"the topic {self.name} cannot keep schemas: {why}"
        logger.warning("%s", self._fault)
