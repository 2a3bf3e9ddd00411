"""Kinds of members: which client, and how it is set up. A kind fits into JSON, for other processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from wire.group_stories.readers_aiokafka import AiokafkaReader
from wire.group_stories.readers_confluent import ConfluentReader
from wire.group_stories.readers_kafka_python import KafkaPythonReader
from wire.group_stories.reading import Reader, Watcher

READERS: Final[Mapping[str, type[AiokafkaReader | ConfluentReader | KafkaPythonReader]]] = {
    "aiokafka": AiokafkaReader,
    "confluent": ConfluentReader,
    "kafka-python": KafkaPythonReader,
}


@dataclass(frozen=True, slots=True)
class Kind:
    """`Kind("confluent", {"group_protocol": "consumer"})`: options are the client's, dots as underscores.

    `assignor` is "range", "roundrobin", "sticky" or "cooperative-sticky" for all of them, where they have it.
    """

    client: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.client, *(str(value) for value in self.options.values())])

    def but(self, **options: Any) -> "Kind":
        return Kind(self.client, {**self.options, **options})

    def open(self, bootstrap: str, group: str, topics: Sequence[str], watcher: Watcher) -> Reader:
        """Have a new consumer subscribe to topics, or to the one pattern, which starts with ^."""
        return READERS[self.client](bootstrap, topics, watcher, group_id=group, **self.options)
