"""The schemas topic: its leader, its settings, its creation by the first write; requests to its leader."""

import logging
from dataclasses import dataclass
from typing import Final

from headrace.client import errors
from headrace.client.wire import requests
from headrace.client.wire.connection import Address, NoAnswer
from headrace.gateway.problems import Problem
from headrace.gateway.reach import Reach
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.fetch import PartitionData

logger = logging.getLogger(__name__)

COMPARE_AND_APPEND: Final = "headrace.append.expected.offset"
"""With this setting, a batch carries the offset that it expects, and is refused if it would get another."""

_REPLICAS: Final = 3
FETCH_BYTES: Final = 8 * 1024 * 1024
APPEND_MS: Final = 10_000

_UNCERTAIN: Final = {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
"""The batch is in the leader's log, but perhaps not committed."""

_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}


@dataclass(frozen=True, slots=True)
class Leader:
    """The address of the partition's leader, and the id of the topic."""

    topic_id: bytes
    address: Address


@dataclass(frozen=True, slots=True)
class AppendResult:
    """The base offset of an append, or why there is none."""

    base_offset: int = -1
    conflict: bool = False  # the leader has refused the expected offset
    uncertain: bool = False  # the batch may have been appended
    why: str = ""


class SchemasTopic:
    """The topic `_schemas`, or whatever name is configured."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self.name = reach.settings.schemas_topic
        self._partition = TopicPartition(self.name, 0)
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
        if self._leader is not None:
            return self._leader
        metadata = self._reach.metadata()
        topic = next((each for each in metadata.topics if each.name == self.name), None)
        if topic is None:
            return None
        address = requests.addresses_by_id(metadata).get(
            requests.leaders_of(metadata).get(self._partition, requests.NO_LEADER)
        )
        if address is None:
            raise errors.Retriable(f"the topic {self.name} has no leader (LEADER_NOT_AVAILABLE)")
        self._partitions = len(topic.partitions)
        leader = Leader(topic.topic_id, address)
        # A new leader does not know the high watermark yet: its Fetch responses may end before
        # records that were already acknowledged (KIP-207). Then this raises Retriable.
        self.offset(leader, requests.LATEST)
        if leader.topic_id != self._checked:
            self._check_settings(leader)
        self._leader = leader
        return leader

    def ensure_writable(self) -> None:
        """Raise a Problem if the topic would lose records some day."""
        if self._fault is not None and self._leader is not None:
            self._check_settings(self._leader)  # an operator may have fixed it
        if self._fault is not None:
            raise Problem(50001, self._fault)

    def create(self) -> None:
        replicas = min(_REPLICAS, len(self._reach.metadata().brokers))
        configs = {"cleanup.policy": "compact"}
        if replicas == _REPLICAS:
            configs["min.insync.replicas"] = "2"
        try:
            self._create(replicas, configs | {COMPARE_AND_APPEND: "true"})
        except errors.ClientError as error:
            if error.error_code != ErrorCode.INVALID_CONFIG:
                raise
            # Apache Kafka does not know the setting.
            self._create(replicas, configs)

    def _create(self, replicas: int, configs: dict[str, str]) -> None:
        try:
            self._reach.admin.create_topic(self.name, partitions=1, replicas=replicas, configs=configs)
        except errors.TopicExists:
            logger.info("another gateway has created the topic %s", self.name)
        except errors.NoSuchTopic:
            logger.info("the topic %s is created, but not every broker knows it yet", self.name)

    def _check_settings(self, leader: Leader) -> None:
        """Read the settings that matter to a writer, once for each topic id."""
        try:
            configs = {config.name: config.value for config in self._reach.topics.configs(self.name)}
        except errors.NoSuchTopic as error:
            raise errors.Retriable(str(error)) from error
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

    def fetch(self, leader: Leader, offset: int, wait_ms: int) -> PartitionData | None:
        """Return the batches from `offset` on, after waiting up to `wait_ms` for some.

        None if the log ends before `offset` (OFFSET_OUT_OF_RANGE): it is not the log that was read before.
        """
        request = requests.fetch_request(
            self._partition, offset, topic_id=leader.topic_id, max_bytes=FETCH_BYTES, max_wait_ms=wait_ms
        )
        response = self._reach.brokers.at(leader.address, request)
        self._check(response.error_code)
        if not response.responses:
            raise errors.Retriable(f"{self.name}: the broker throttles")  # Apache Kafka, beyond a quota
        answer: PartitionData = response.responses[0].partitions[0]
        if answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return None
        self._check(answer.error_code)
        return answer

    def offset(self, leader: Leader, timestamp: int) -> int:
        """Return the offset of a timestamp, which may be EARLIEST or LATEST."""
        response = self._reach.brokers.at(
            leader.address, requests.list_offsets_request({self._partition: timestamp})
        )
        answer = requests.listed_offsets(response)[self._partition]
        self._check(answer.error_code)
        return int(answer.offset)

    def append(self, batch: bytes) -> AppendResult:
        try:
            leader = self.leader()
            if leader is None:
                return AppendResult(why=f"the topic {self.name} has been deleted")
            request = requests.produce_request(
                {self._partition: batch}, {self.name: leader.topic_id}, timeout_ms=APPEND_MS
            )
            answer = self._reach.brokers.at(leader.address, request).responses[0].partition_responses[0]
            why = answer.error_message or errors.error_name(answer.error_code)
            if answer.error_code == ErrorCode.NONE:
                return AppendResult(answer.base_offset)
            # Our batches are valid: without an error for one of its records, the offset is refused.
            if answer.error_code == ErrorCode.INVALID_RECORD and not answer.record_errors:
                return AppendResult(conflict=True, why=why)
            if answer.error_code in _UNCERTAIN:
                return AppendResult(uncertain=True, why=why)
            if answer.error_code in _TOO_LARGE:
                raise Problem(42209, f"the schema is too large for the topic: {why}")
            self._check(answer.error_code, why)
            raise AssertionError(answer)
        except errors.Unreachable as error:
            self.forget_leader()
            return AppendResult(uncertain=isinstance(error, NoAnswer), why=str(error))

    def _check(self, code: int, why: str | None = None) -> None:
        """Raise Retriable, or a Problem if a retry cannot resolve the error."""
        if code != ErrorCode.NONE and not ErrorCode(code).retriable:
            raise Problem(50001, f"{self.name}: {why or errors.error_name(code)}")
        errors.raise_for(code, why, self.name)
