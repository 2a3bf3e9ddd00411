"""Schemas, as a broker has to do with them: topics whose records must have one, and telling ZooKeeper."""

from collections import ChainMap
from collections.abc import Callable, Mapping

from headrace.broker.image import TopicImage
from headrace.broker.partition import Partition
from headrace.broker.schema_mirror import SchemaMirror
from headrace.broker.schema_rules import check
from headrace.broker.schema_view import SCHEMAS_TOPIC, RunInThread, SchemaView
from headrace.broker.settings import Value
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.errors import KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import KnownSchemas, NotLookedUp, RegisteredSchema, Rule
from headrace.storage.inspection import is_quick


class Schemas:
    """A broker's rules about schemas, and what it knows of them."""

    def __init__(
        self,
        view: SchemaView,
        run: RunInThread,
        *,
        partitions: Mapping[TopicPartition, Partition],
        session: Callable[[], ZooKeeperSession],
    ) -> None:
        self.rules: dict[str, Rule] = {}  # of the topics that have one
        self._run = run
        self._view = view
        self._mirror = SchemaMirror(view, partitions, session)

    def use(self, topic: TopicImage, values: Mapping[str, Value]) -> None:
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

    async def refusal(self, topic: str, batch: Buffer) -> KafkaError | None:
        """Why the batch cannot be taken: its schemas are invalid_records, or cannot be looked up.

        What looks wrong is looked at again after reading on: it may have been registered just now.
        """
        wrong = await self._look(topic, batch)
        if wrong is None:
            return None
        try:
            await self._view.catch_up()
        except KafkaError as error:
            return error
        return await self._look(topic, batch)

    async def _look(self, topic: str, batch: Buffer) -> KafkaError | None:
        rule = self.rules.get(topic)
        if rule is None:
            return None
        found: dict[SchemaRef, RegisteredSchema] = {}  # what had to be looked up; it grows until all is there
        while True:
            try:
                await self._check(topic, rule, batch, found)
            except NotLookedUp as missing:
                found.update(await self._view.look_up(missing.refs))
            except KafkaError as error:
                return error
            else:
                return None

    async def _check(
        self, topic: str, rule: Rule, batch: Buffer, found: dict[SchemaRef, RegisteredSchema]
    ) -> None:
        remembered = self._view.names.schemas
        known = KnownSchemas(
            self._view.refs(f"{topic}-key"),
            self._view.refs(f"{topic}-value"),
            ChainMap(found, remembered) if found else remembered,
        )
        if is_quick(batch):
            check(topic, rule, batch, known)
        else:
            await self._run(check, topic, rule, batch, known)

    def stop(self) -> None:
        self._mirror.stop()
        self._view.close()
