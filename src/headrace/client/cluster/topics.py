"""Topics and settings as they are now, asked without librdkafka: that waits half a minute for one that hangs.

TopicQuestions(LiveBrokers("127.0.0.1:9092")).topic("orders").partitions[0].leader
"""

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.client.admin.admin import Config, Partition, Topic
from headrace.client.cluster.reading import BROKER, NOBODY, TOPIC
from headrace.client.cluster.spans import read_spans
from headrace.client.errors import ClientError, NoSuchTopic, Unreachable
from headrace.client.errors_advice import why_no_topic
from headrace.client.wire.brokers import raise_for
from headrace.client.wire.connection import NoAnswer
from headrace.client.wire.live_brokers import QUESTION_S, LiveBrokers, Node, nodes_of
from headrace.client.wire.spare_connections import Answer, Talk
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from headrace.protocol.schema.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_SOURCES: Final = {1: "topic", 2: "broker", 3: "all brokers", 4: "broker's file", 5: "default"}
_DEFAULT: Final = 5


class TopicQuestions:
    """For any number of threads. The controller is asked if it answers: what it has done, it knows first."""

    def __init__(self, brokers: LiveBrokers) -> None:
        self._brokers = brokers

    def metadata(self, name: str | None = None) -> MetadataResponse:
        """This topic, or all."""
        wanted = None if name is None else [MetadataRequestTopic(name=name)]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        found: MetadataResponse = self._decided(lambda at: at.ask(request))
        return found

    def names(self) -> list[str]:
        """Of every topic, in order."""
        return sorted(each.name for each in self.metadata().topics if each.name is not None)

    def topic(self, name: str) -> Topic:
        """A topic without offsets and settings; NoSuchTopic if there is none."""
        (found,) = self.metadata(name).topics
        return topic_of(found, name)

    def in_full(self, name: str) -> Topic:
        """A topic with where its partitions begin and end, and its own settings.

        Offsets are None also where the leader does not answer.
        """
        metadata = self.metadata(name)
        found = topic_of(metadata.topics[0], name)
        places = [TopicPartition(name, each.index) for each in found.partitions]
        starts, ends = read_spans(self._brokers, metadata, places)
        return replace(
            found,
            partitions=tuple(
                replace(
                    each,
                    start_offset=starts.get(TopicPartition(name, each.index)),
                    next_offset=ends.get(TopicPartition(name, each.index)),
                )
                for each in found.partitions
            ),
            configs={each.name: each.value or "" for each in self.configs(name) if each.source == "topic"},
        )

    def configs(self, name: str) -> list[Config]:
        """Every setting of a topic, by name; NoSuchTopic if there is none."""
        request = _describe(TOPIC, name)
        answer: DescribeConfigsResponse = self._decided(lambda at: at.ask(request))
        (found,) = answer.results
        if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NoSuchTopic(name)
        return configs_of(found, name)

    def broker_configs(self, broker_id: int) -> list[Config]:
        """Every setting of a broker, by name, as it says itself."""
        nodes = {each.id: each for each in self._brokers.nodes()}
        if broker_id not in nodes:
            there = ", ".join(map(str, sorted(nodes)))
            raise ClientError(f"there is no broker {broker_id}, only {there}")
        node, request = nodes[broker_id], _describe(BROKER, str(broker_id))
        answers: dict[Node, DescribeConfigsResponse | NoAnswer] = self._brokers.each(
            {node: lambda at: at.ask(request)}
        )
        answer = answers[node]
        if isinstance(answer, NoAnswer):
            raise Unreachable(f"broker {broker_id}: {answer}")
        (found,) = answer.results
        return configs_of(found, f"broker {broker_id}")

    def _decided(self, talk: Talk[Answer]) -> Answer:
        """The controller's answer, or anybody's if it gives none."""
        found = self._brokers.metadata(within_s=QUESTION_S)
        for node in nodes_of(found):
            if node.id == found.controller_id:
                answer = self._brokers.each({node: talk})[node]
                if not isinstance(answer, NoAnswer):
                    return answer
        return self._brokers.first(talk, QUESTION_S)


def topic_of(found: MetadataResponseTopic, name: str) -> Topic:
    """What a broker says of a topic; NoSuchTopic if it says that there is none."""
    if found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise NoSuchTopic(name)
    raise_for(found.error_code, why_no_topic(name), name)
    return Topic(
        name=name,
        topic_id=base64.urlsafe_b64encode(found.topic_id).decode().rstrip("="),
        internal=found.is_internal,
        partitions=_partitions(found.partitions),
        configs={},
    )


def configs_of(found: DescribeConfigsResult, what: str) -> list[Config]:
    """What a broker says of settings, by name."""
    raise_for(found.error_code, found.error_message, what)
    return [
        Config(
            name=each.name,
            value=each.value,
            source=_SOURCES.get(each.config_source, "unknown"),
            is_default=each.config_source == _DEFAULT,
            read_only=each.read_only,
        )
        for each in sorted(found.configs, key=lambda each: each.name)
    ]


def _partitions(found: Sequence[MetadataResponsePartition]) -> tuple[Partition, ...]:
    return tuple(
        Partition(
            index=each.partition_index,
            leader=None if each.leader_id == NOBODY else each.leader_id,
            replicas=tuple(each.replica_nodes),
            in_sync=tuple(each.isr_nodes),
        )
        for each in sorted(found, key=lambda each: each.partition_index)
    )


def _describe(kind: int, name: str) -> DescribeConfigsRequest:
    wanted = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
    return DescribeConfigsRequest(resources=[wanted])
