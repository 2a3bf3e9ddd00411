"""The partitions that a consumer reads: assigned by its group, or by its user."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.moves import with_ends
from headrace.client.consumer.offsets import Offsets
from headrace.client.consumer.source import Source, partitions_of
from headrace.client.errors import BadSetting, ClientError, NoSuchTopic
from headrace.protocol.ids import TopicPartition

TIMEOUT_S: Final = 30.0  # for the list of topics

Listener = Callable[[list[TopicPartition]], object]


class Listeners(NamedTuple):
    """Callbacks about assigned, revoked and lost partitions."""

    assigned: Listener | None
    revoked: Listener | None
    lost: Listener | None


class Subscription:
    """The subscription or assignment of one consumer."""

    def __init__(
        self, source: Source, offsets: Offsets, listeners: Listeners, *, start: int, alone: bool
    ) -> None:
        """`start` is the default first offset; `alone` is a consumer without a group."""
        self._source, self._offsets, self._client = source, offsets, source.client
        self._listeners = listeners
        self._start = start
        self._alone = alone
        self._subscribed = False

    @property
    def made(self) -> bool:
        return self._subscribed or bool(self._source.assigned)

    def subscribe(self, topics: str | Sequence[str]) -> None:
        """Read these topics, and no others; NoSuchTopic if one does not exist."""
        wanted = names_of(topics)
        patterns = [topic for topic in wanted if topic.startswith("^")]
        self._source.patterns = bool(patterns)
        # With the consumer protocol, brokers match patterns later than they assign named topics.
        self._source.more_to_come = self._source.incremental and 0 < len(patterns) < len(wanted)
        there = self._topics()
        for topic in wanted:
            if not topic.startswith("^") and topic not in there:
                raise NoSuchTopic(topic)
        if not self._alone:
            with naming_bad_patterns(wanted):
                self._client.subscribe(
                    wanted, on_assign=self._gained, on_revoke=self._revoked, on_lost=self._lost
                )
            self._subscribed = True
        elif self._source.patterns:
            raise ClientError("a regular expression for topics needs a group: give group=NAME")
        else:
            partitions = [
                TopicPartition(topic, index) for topic in wanted for index in there[topic].partitions
            ]
            self._read(dict.fromkeys(partitions, self._start))

    def assign(self, begin: Mapping[TopicPartition, int]) -> None:
        there = self._topics()
        for partition in begin:
            if partition.topic not in there:
                raise NoSuchTopic(partition.topic)
            if partition.partition not in (partitions := there[partition.topic].partitions):
                raise ClientError(
                    f"{partition} does not exist: the topic has partitions 0 to {len(partitions) - 1}"
                )
        self._read(begin)

    def own(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return these partitions; ClientError if one is not assigned to this consumer."""
        for partition in partitions:
            if partition not in self._source.assigned:
                raise ClientError(f"{partition} is not assigned to this consumer")
        return partitions

    def _read(self, begin: Mapping[TopicPartition, int]) -> None:
        wanted = self._offsets.ask("the partitions", lambda: with_ends(self._client, begin))
        self._source.lost(list(self._source.assigned))
        self._client.assign([RdkafkaPartition(*partition, offset) for partition, offset in wanted.items()])
        self._source.gained(wanted, wanted)

    def _topics(self) -> Mapping[str, Any]:
        found = self._offsets.ask("the topics", lambda: self._client.list_topics(timeout=TIMEOUT_S))
        topics: Mapping[str, Any] = found.topics
        return topics

    def _gained(self, _client: object, partitions: Sequence[RdkafkaPartition]) -> None:
        self._source.gained(partitions_of(partitions))
        self._tell(self._listeners.assigned, partitions)

    def _revoked(self, _client: object, partitions: Sequence[RdkafkaPartition]) -> None:
        self._tell(self._listeners.revoked, partitions)
        self._offsets.leave(partitions_of(partitions))

    def _lost(self, _client: object, partitions: Sequence[RdkafkaPartition]) -> None:
        self._tell(self._listeners.lost or self._listeners.revoked, partitions)
        self._offsets.leave(partitions_of(partitions))

    def _tell(self, listener: Listener | None, partitions: Sequence[RdkafkaPartition]) -> None:
        if listener is not None and not self._offsets.left:
            self._source.call(listener, partitions_of(partitions))


def names_of(topics: object) -> list[str]:
    if isinstance(topics, str):
        return [topics]
    if isinstance(topics, bytes) or not isinstance(topics, Iterable):
        raise NoSuchTopic(topics)
    names = list(topics)
    if not names:
        raise BadSetting("no topic is given to subscribe to: give at least one, or close the consumer")
    for name in names:
        if not isinstance(name, str):
            raise NoSuchTopic(name)
    return names


@contextmanager
def naming_bad_patterns(topics: Sequence[str]) -> Iterator[None]:
    """Raise BadSetting if librdkafka's own regular expressions refuse one of these."""
    try:
        yield
    except KafkaException as error:
        patterns = [topic for topic in topics if topic.startswith("^")]
        if error.args[0].code() != KafkaError._INVALID_ARG or not patterns:  # noqa: SLF001
            raise
        raise BadSetting(
            f"{' or '.join(patterns)} is not a regular expression that librdkafka supports: "
            "it has ( ) [ ] . * + ? | ^ $, and no look-ahead"
        ) from error
