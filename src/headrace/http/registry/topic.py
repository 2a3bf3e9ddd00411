"""The topic that schemas are kept in: who leads it, whether it is as it should be, making it on first use."""

import logging
from http import HTTPStatus
from typing import Final

from headrace.client.errors import ClientError, NoSuchTopic, Retriable, TopicExists
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.requests import NO_LEADER, addresses_by_id, leaders_of
from headrace.http.problems import Problem
from headrace.http.reach import Reach
from headrace.http.registry.asking import Led, ensure_all_is_shown
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse

logger = logging.getLogger(__name__)

COMPARE_AND_APPEND: Final = "headrace.append.expected.offset"
"""While a topic has this setting, a batch says which offset it expects, and is refused if it gets another."""

_REPLICAS: Final = 3


class SchemasTopic:
    """`_schemas`, or what else it is called."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.name = reach.settings.schemas_topic
        self._led: Led | None = None
        self._checked: bytes | None = None  # the topic whose settings are known
        self._complaint: str | None = None
        self._partitions = 1
        self.compares = False

    def look_again(self) -> None:
        """Its settings may have been changed."""
        self._checked = None
        self.forget_leader()

    def forget_leader(self) -> None:
        self._led = None

    def led(self, brokers: Brokers) -> Led | None:
        """Who leads it; None if there is no such topic, Retriable if it has no leader just now."""
        if self._led is None:
            led = self._look(brokers.metadata())
            if led is not None:
                ensure_all_is_shown(brokers, led, self.name)
                if led.topic_id != self._checked:
                    self._check(led)
            self._led = led
        return self._led

    def ensure_writable(self) -> None:
        """A Problem if what is written here would be lost some day."""
        if self._complaint is not None and self._led is not None:
            self._check(self._led)  # somebody may have put it right
        if self._complaint is not None:
            raise Problem(HTTPStatus.INTERNAL_SERVER_ERROR, 50001, self._complaint)

    def create(self, brokers: Brokers) -> None:
        """Make it, unless somebody else just has."""
        replicas = min(_REPLICAS, len(brokers.metadata().brokers))
        configs = {"cleanup.policy": "compact", COMPARE_AND_APPEND: "true"}
        if replicas == _REPLICAS:
            configs["min.insync.replicas"] = "2"
        try:
            self._create(replicas, configs)
        except ClientError as error:
            if error.error_code != ErrorCode.INVALID_CONFIG:
                raise
            del configs[COMPARE_AND_APPEND]  # Apache Kafka's brokers do not have it
            self._create(replicas, configs)

    def _create(self, replicas: int, configs: dict[str, str]) -> None:
        try:
            self._reach.admin.create_topic(self.name, partitions=1, replicas=replicas, configs=configs)
        except TopicExists:
            logger.info("another gateway has made the topic %s", self.name)
        except NoSuchTopic:
            logger.info("the topic %s is made, and not every broker knows it yet", self.name)

    def _look(self, found: MetadataResponse) -> Led | None:
        for topic in found.topics:
            if topic.name == self.name:
                leader = leaders_of(found).get(TopicPartition(self.name, 0), NO_LEADER)
                address = addresses_by_id(found).get(leader)
                if address is None:
                    raise Retriable(f"the topic {self.name} has no leader (LEADER_NOT_AVAILABLE)")
                self._partitions = len(topic.partitions)
                return Led(topic.topic_id, address)
        return None

    def _check(self, led: Led) -> None:
        """What the topic's settings mean for whoever writes to it, once for each topic."""
        try:
            configs = {each.name: each.value for each in self._reach.topics.configs(self.name)}
        except NoSuchTopic as error:
            raise Retriable(str(error)) from error
        self._complaint = None
        self._checked = led.topic_id
        self.compares = configs.get(COMPARE_AND_APPEND) == "true"
        policy = configs.get("cleanup.policy") or ""
        if policy != "compact":
            put_right = f"headrace config set topic {self.name} cleanup.policy=compact"
            self._complain(f"its cleanup.policy is {policy}, which would lose them; `{put_right}` helps")
        if self._partitions > 1:
            self._complain(f"it has {self._partitions} partitions, and should have one")
        if not self.compares:
            logger.warning(
                "the topic %s does not have %s: only one gateway, and no other registry, may write to it",
                self.name,
                COMPARE_AND_APPEND,
            )

    def _complain(self, what: str) -> None:
        self._complaint = f"the topic {self.name} cannot keep schemas: {what}"
        logger.warning("%s", self._complaint)
