"""Topics, their settings and offsets, and the settings of brokers: requests, and what their responses say.

TopicAdmin(Brokers("127.0.0.1:9092")).topic("orders").partitions[0].leader
"""

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from headrace.client.errors import ClientError, NoSuchTopic, TopicExists, Unreachable, raise_for, why_no_topic
from headrace.client.wire import requests
from headrace.client.wire.brokers import PARTIAL_S, QUESTION_S, Brokers
from headrace.client.wire.offsets import leaders, read_offsets
from headrace.client.wire.retry import Backoff
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.protocol.schema.create_topics import CreatableTopicResult
from headrace.protocol.schema.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from headrace.protocol.schema.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.protocol.schema.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResponse
from headrace.protocol.schema.incremental_alter_configs import IncrementalAlterConfigsResponse
from headrace.protocol.schema.metadata import MetadataResponse, MetadataResponseTopic

ALL_BROKERS: Final = "all brokers"  # the source of a setting that was set for all brokers
CHANGE_S: Final = requests.TIMEOUT_MS / 1000 + 5  # for the response to a request that changes something
_SOURCES: Final = {1: "topic", 2: "broker", 3: ALL_BROKERS, 4: "broker's file", 5: "default"}
_DEFAULT: Final = 5
_NO_TOPIC: Final = {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """One partition and its offsets, which are None while it has no leader."""

    index: int
    leader: int | None
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    start_offset: int | None = None
    next_offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic, and the settings that were set for it."""

    name: str
    topic_id: str
    internal: bool
    partitions: tuple[Partition, ...]
    configs: Mapping[str, str]

    @property
    def replicas(self) -> int:
        return max((len(partition.replicas) for partition in self.partitions), default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSummary:
    """A line in the list of topics."""

    name: str
    partitions: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """A setting of a topic or broker, and where its value comes from."""

    name: str
    value: str | None
    source: str
    is_default: bool
    read_only: bool


class Spans(NamedTuple):
    """Both ends of each partition's log; None or missing where no leader answers."""

    starts: Mapping[TopicPartition, int | None]
    ends: Mapping[TopicPartition, int | None]

    def records(self, partition: TopicPartition) -> int | None:
        """Return how many offsets of the log were assigned and are still in it."""
        start, end = self.starts.get(partition), self.ends.get(partition)
        return None if start is None or end is None else end - start


class TopicAdmin:
    """Topics and settings, for any number of threads; the controller is asked first if it answers."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def summaries(self) -> list[TopicSummary]:
        return [
            TopicSummary(
                name=topic.name,
                partitions=len(topic.partitions),
                replicas=max((len(partition.replica_nodes) for partition in topic.partitions), default=0),
            )
            for topic in sorted(self._metadata().topics, key=lambda each: each.name or "")
            if topic.name is not None
        ]

    def names(self) -> list[str]:
        return [each.name for each in self.summaries()]

    def topic(self, name: str) -> Topic:
        """Return a topic without offsets and settings; NoSuchTopic if there is none."""
        return topic_of(self._metadata(name).topics[0], name)

    def in_full(self, name: str) -> Topic:
        """Return a topic with the offsets of its partitions and the settings that were set for it."""
        metadata = self._metadata(name)
        found = topic_of(metadata.topics[0], name)
        partitions = [TopicPartition(name, each.index) for each in found.partitions]
        starts, ends = read_spans(self._brokers, metadata, partitions)
        return replace(
            found,
            partitions=tuple(
                replace(each, start_offset=starts.get(partition), next_offset=ends.get(partition))
                for each, partition in zip(found.partitions, partitions, strict=True)
            ),
            configs={each.name: each.value or "" for each in self.configs(name) if each.source == "topic"},
        )

    def check(
        self, name: str, *, partitions: int | None, replicas: int | None, configs: Mapping[str, str]
    ) -> CreatableTopicResult:
        """Return what `create` would create; TopicExists or ClientError if it cannot."""
        return self.create(
            name, partitions=partitions, replicas=replicas, configs=configs, validate_only=True
        )

    def create(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> CreatableTopicResult:
        """Create a topic; TopicExists if there is one. None leaves a number to the brokers' settings."""
        request = requests.create_topic_request(
            name, partitions=partitions, replicas=replicas, configs=configs, validate_only=validate_only
        )
        made: CreatableTopicResult = self._change(request, lambda response: response.topics[0])
        if made.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            raise TopicExists(name)
        raise_for(made.error_code, made.error_message, name)
        return made

    def add_partitions(self, name: str, total: int) -> None:
        topic = CreatePartitionsTopic(name=name, count=total, assignments=None)
        request = CreatePartitionsRequest(topics=[topic], timeout_ms=requests.TIMEOUT_MS, validate_only=False)
        _check(self._change(request, lambda response: response.results[0]), name)

    def delete(self, name: str) -> None:
        state = DeleteTopicState(name=name, topic_id=bytes(16))
        request = DeleteTopicsRequest(topic_names=[name], topics=[state], timeout_ms=requests.TIMEOUT_MS)
        _check(self._change(request, lambda response: response.responses[0]), name)

    def configs(self, name: str) -> list[Config]:
        """Return every setting of a topic, by name; NoSuchTopic if there is none."""
        request = requests.describe_configs_request(requests.TOPIC, [name])
        answer: DescribeConfigsResponse = self._brokers.decided(
            lambda at: at.ask(request), within_s=QUESTION_S
        )
        return _configs(answer, name)

    def broker_configs(self, broker_id: int) -> list[Config]:
        """Return every setting of a broker, by name, as the broker itself has it."""
        request = requests.describe_configs_request(requests.BROKER, [str(broker_id)])
        try:
            answer = self._brokers.at(self.broker(broker_id).address, request)
        except Unreachable as error:
            raise Unreachable(f"broker {broker_id}: {error}") from error
        return _configs(answer, f"broker {broker_id}")

    def cluster_configs(self) -> list[Config]:
        """Return the settings that were set for all brokers, by name."""
        answer = self._brokers.any(
            requests.describe_configs_request(requests.BROKER, [requests.EVERY_BROKER])
        )
        found = _configs(answer, "the settings of all brokers")
        return [replace(each, source=ALL_BROKERS, is_default=False) for each in found]

    def alter_configs(self, name: str, *, sets: Mapping[str, str], unsets: Iterable[str] = ()) -> None:
        """Set some settings of a topic, and reset others to their default; all or none."""
        _check(self._alter(requests.TOPIC, name, sets, unsets), name)

    def alter_broker_configs(
        self, broker_id: int, *, sets: Mapping[str, str], unsets: Iterable[str] = ()
    ) -> None:
        """Set some settings of a running broker, and reset others; all or none."""
        node, what = self.broker(broker_id), f"broker {broker_id}"
        _check(self._alter(requests.BROKER, str(broker_id), sets, unsets, node), what)

    def alter_cluster_configs(self, *, sets: Mapping[str, str], unsets: Iterable[str] = ()) -> None:
        """Set some settings for all brokers, and reset others; all or none."""
        _check(
            self._alter(requests.BROKER, requests.EVERY_BROKER, sets, unsets), "the settings of all brokers"
        )

    def broker(self, broker_id: int) -> requests.Node:
        """Return a registered broker; ClientError if there is no such broker."""
        nodes = {each.id: each for each in self._brokers.nodes()}
        if broker_id not in nodes:
            raise ClientError(f"there is no broker {broker_id}, only {', '.join(map(str, sorted(nodes)))}")
        return nodes[broker_id]

    def _alter(
        self,
        resource_type: int,
        name: str,
        sets: Mapping[str, str],
        unsets: Iterable[str],
        node: requests.Node | None = None,
    ) -> Any:
        changes = [
            *((key, requests.SET, value) for key, value in sets.items()),
            *((key, requests.DELETE, None) for key in unsets),
        ]
        request = requests.alter_configs_request(resource_type, {name: changes})
        answer: IncrementalAlterConfigsResponse = (
            self._brokers.any(request, answer_s=CHANGE_S)
            if node is None
            else self._brokers.at(node.address, request, answer_s=CHANGE_S)
        )
        return answer.responses[0]

    def offsets(
        self, partitions: Iterable[TopicPartition], timestamp: int
    ) -> Mapping[TopicPartition, int | None]:
        """Return the offset of a timestamp, EARLIEST or LATEST in each partition.

        None where there is none, or no leader; Unreachable if a leader does not answer.
        """
        found = read_offsets(self._brokers, partitions, timestamp, Backoff(QUESTION_S))
        for partition, missing in found.missing.items():
            if missing.retriable:
                raise Unreachable(f"{partition}: {missing.why}")
        return {**found.answers, **dict.fromkeys(found.missing)}

    def partitions_of(self, topic: str, indexes: Iterable[int] = ()) -> list[TopicPartition]:
        """Return these partitions of a topic, or all; ClientError if one of them does not exist."""
        there = {partition.index for partition in self.topic(topic).partitions}
        wanted = set(indexes)
        for index in sorted(wanted - there):
            raise ClientError(f"{topic} has no partition {index}, only 0 to {max(there)}")
        return [TopicPartition(topic, index) for index in sorted(wanted or there)]

    def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        """Delete the records before an offset (-1: all) of each partition, and return the new start offsets.

        Nothing is deleted if one of the partitions does not exist, or has no leader.
        """
        if not before:
            return {}
        self.partitions_of(topic, before)
        metadata = self._metadata(topic)
        addresses, led = requests.addresses_by_id(metadata), requests.leaders_of(metadata)
        by_leader: dict[Any, dict[int, int]] = {}
        for index, offset in before.items():
            address = addresses.get(led[TopicPartition(topic, index)])
            if address is None:
                raise Unreachable(f"{topic}-{index} has no leader (LEADER_NOT_AVAILABLE)")
            by_leader.setdefault(address, {})[index] = offset
        starts: dict[int, int] = {}
        for address, offsets in by_leader.items():
            partitions = [
                DeleteRecordsPartition(partition_index=index, offset=offset)
                for index, offset in offsets.items()
            ]
            request = DeleteRecordsRequest(
                topics=[DeleteRecordsTopic(name=topic, partitions=partitions)], timeout_ms=requests.TIMEOUT_MS
            )
            answer: DeleteRecordsResponse = self._brokers.at(address, request, answer_s=CHANGE_S)
            for partition in answer.topics[0].partitions:
                what = str(TopicPartition(topic, partition.partition_index))
                if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    past = offsets[partition.partition_index]
                    raise ClientError(f"{what}: offset {past} is past its end (OFFSET_OUT_OF_RANGE)")
                raise_for(partition.error_code, None, what)
                starts[partition.partition_index] = partition.low_watermark
        return starts

    def _metadata(self, name: str | None = None) -> MetadataResponse:
        return self._brokers.metadata(None if name is None else [name], within_s=QUESTION_S)

    def _change(self, request: Message, result: Any) -> Any:
        return self._brokers.controller(request, answer_s=CHANGE_S, result=result)


def read_spans(brokers: Brokers, found: MetadataResponse, partitions: Iterable[TopicPartition]) -> Spans:
    """Return both ends of these partitions; `found` names their leaders."""
    led = {each: at for each, at in leaders(found, partitions).items() if isinstance(at, requests.Node)}
    starts, ends = (
        read_offsets(brokers, led, timestamp, Backoff(QUESTION_S, retries_s=PARTIAL_S), led).answers
        for timestamp in (requests.EARLIEST, requests.LATEST)
    )
    return Spans(starts, ends)


def topic_of(found: MetadataResponseTopic, name: str) -> Topic:
    """Return a topic of a Metadata response; NoSuchTopic if it does not exist."""
    if found.error_code in _NO_TOPIC:
        raise NoSuchTopic(name)
    raise_for(found.error_code, why_no_topic(name), name)
    return Topic(
        name=name,
        topic_id=base64.urlsafe_b64encode(found.topic_id).decode().rstrip("="),
        internal=found.is_internal,
        partitions=tuple(
            Partition(
                index=partition.partition_index,
                leader=None if partition.leader_id == requests.NO_LEADER else partition.leader_id,
                replicas=tuple(partition.replica_nodes),
                in_sync=tuple(partition.isr_nodes),
            )
            for partition in sorted(found.partitions, key=lambda each: each.partition_index)
        ),
        configs={},
    )


def _configs(answer: DescribeConfigsResponse, what: str) -> list[Config]:
    (found,) = answer.results
    _check(found, what)
    return [Config(**config_of(config)) for config in sorted(found.configs, key=lambda each: each.name)]


def config_of(found: DescribeConfigsResourceResult) -> dict[str, Any]:
    return {
        "name": found.name,
        "value": found.value,
        "source": _SOURCES.get(found.config_source, "unknown"),
        "is_default": found.config_source == _DEFAULT,
        "read_only": found.read_only,
    }


def _check(result: Any, what: str) -> None:
    if result.error_code in _NO_TOPIC:
        raise NoSuchTopic(what)
    raise_for(result.error_code, result.error_message, what)
