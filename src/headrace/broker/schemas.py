"""Schemas, as a broker has to do with them: topics whose records must have one, and telling ZooKeeper."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from headrace.broker.schema_mirror import SchemaMirror
from headrace.broker.schema_rules import Rule, check
from headrace.broker.schema_view import SCHEMAS_TOPIC, SchemaView
from headrace.broker.settings import Value
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer

if TYPE_CHECKING:
    from headrace.broker.image import TopicImage
    from headrace.broker.server import Broker

Place = tuple[str, int]
"""A topic and the number of a partition."""


class Schemas:
    """A broker's rules about schemas, and what it knows of them."""

    def __init__(self, broker: "Broker") -> None:
        self.rules: dict[str, Rule] = {}  # of the topics that have one
        self.line = asyncio.Lock()
        """Whoever writes to a topic with a rule stands in it, and is not overtaken while schemas are read."""
        self._broker = broker
        self._view = SchemaView(broker)
        self._mirror = SchemaMirror(broker, self._view)

    def use(self, topic: "TopicImage", values: Mapping[str, Value]) -> None:
        """A topic is here, or has other settings, or another leader."""
        rule = Rule.of(values)
        if rule is None:
            self.rules.pop(topic.name, None)
        else:
            self.rules[topic.name] = rule
        if topic.name == SCHEMAS_TOPIC:
            self._mirror.look()

    def forget(self, topic: str) -> None:
        """A topic is gone."""
        self.rules.pop(topic, None)

    def written(self, topic: str) -> None:
        """Something was written to a topic: if it is that of schemas, ZooKeeper has to know."""
        if topic == SCHEMAS_TOPIC:
            self._mirror.look()

    async def refusals(self, batches: Mapping[Place, Sequence[Buffer]]) -> dict[Place, KafkaError]:
        """Which of these batches cannot be taken, and why: their schemas are wrong, or cannot be looked up.

        Whatever looks wrong is looked at again after reading on: it may have been registered just now.
        """
        suspects = self._wrong(batches)
        if not suspects:
            return {}
        try:
            await self._view.catch_up()
        except KafkaError as error:
            return dict.fromkeys(suspects, error)
        return self._wrong({place: batches[place] for place in suspects})

    def _wrong(self, batches: Mapping[Place, Sequence[Buffer]]) -> dict[Place, KafkaError]:
        found: dict[Place, KafkaError] = {}
        for place, those in batches.items():
            rule = self.rules.get(place[0])
            if rule is None:
                continue
            try:
                for batch in those:
                    check(place[0], rule, batch, self._view.knows)
            except KafkaError as error:
                found[place] = error
        return found

    def stop(self) -> None:
        self._mirror.stop()
        self._view.close()
