"""Schema validation of produced records, and the copy of the schemas in ZooKeeper."""

from collections import ChainMap
from collections.abc import Callable, Mapping
from typing import Final

from headrace.broker.image import TopicImage
from headrace.broker.replicas.partition import Partition
from headrace.broker.schemas.mirror import SchemaMirror
from headrace.broker.schemas.view import SCHEMAS_TOPIC, RunInThread, SchemaView
from headrace.broker.settings.setting import Value
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.batch import read_batch
from headrace.protocol.errors import InvalidRecord, InvalidRecords, KafkaError
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.record_walk import MAX_NAMED
from headrace.protocol.records import with_headers
from headrace.registry.schema_ids import HEADERS, SchemaRef
from headrace.registry.validation import KnownSchemas, NotLookedUp, RegisteredSchema, Rule, invalid_records
from headrace.storage.append.inspection import is_quick

MOST_NAMED: Final = MAX_NAMED  # invalid records of a batch that the response lists
MOST_RECORDS: Final = 100_000  # of a batch: a few bytes can decompress to millions of records
MOST_BYTES: Final = 32 * 1024 * 1024  # decompressed


class WrongSchema(InvalidRecords):
    """Records of the batch have no schema id, or one that is not registered for the topic."""


def check(topic: str, rule: Rule, batch: Buffer, known: KnownSchemas) -> None:
    """Raise WrongSchema if a record of the batch has an invalid schema, and KafkaError for an invalid batch.

    Raise NotLookedUp if the result depends on schemas that are not in `known`; it names all of them.
    """
    view = memoryview(batch)
    header = read_batch(view)
    if header.records_count > MOST_RECORDS:
        raise InvalidRecord(
            f"the batch has {header.records_count:,} records; "
            f"schema validation accepts at most {MOST_RECORDS:,} (INVALID_RECORD)"
        )
    records = with_headers(view, header, HEADERS.values(), max_bytes=MOST_BYTES)
    invalid = invalid_records(topic, rule, records, known, MOST_NAMED)
    if invalid:
        raise WrongSchema(invalid)


class Schemas:
    """The topics with schema validation, and the registry's state to validate against."""

    def __init__(
        self,
        view: SchemaView,
        run: RunInThread,
        *,
        partitions: Mapping[TopicPartition, Partition],
        session: Callable[[], ZooKeeperSession],
    ) -> None:
        self.rules: dict[str, Rule] = {}  # by topic
        self._run = run
        self._view = view
        self._mirror = SchemaMirror(view, partitions, session)

    def use(self, topic: TopicImage, values: Mapping[str, Value]) -> None:
        """Update the rule of a topic that was created or whose settings or leader have changed."""
        rule = Rule.of(values)
        if rule is None:
            self.rules.pop(topic.name, None)
        else:
            self.rules[topic.name] = rule
        if topic.name == SCHEMAS_TOPIC:
            self._mirror.update()

    def forget(self, topic: str) -> None:
        """Remove the rule of a deleted topic."""
        self.rules.pop(topic, None)

    def written(self, topic: str) -> None:
        """Update the copy in ZooKeeper after an append to `_schemas`."""
        if topic == SCHEMAS_TOPIC:
            self._mirror.update()

    async def refusal(self, topic: str, batch: Buffer) -> KafkaError | None:
        """Return the error if the schemas of the batch are invalid or cannot be looked up, or None.

        An invalid batch is checked again after a read of `_schemas`: its schema may be new.
        """
        if await self._validate(topic, batch) is None:
            return None
        try:
            await self._view.catch_up()
        except KafkaError as error:
            return error
        return await self._validate(topic, batch)

    async def _validate(self, topic: str, batch: Buffer) -> KafkaError | None:
        rule = self.rules.get(topic)
        if rule is None:
            return None
        looked_up: dict[SchemaRef, RegisteredSchema] = {}  # for this batch
        while True:
            remembered = self._view.names.schemas
            known = KnownSchemas(
                self._view.refs(f"{topic}-key"),
                self._view.refs(f"{topic}-value"),
                ChainMap(looked_up, remembered) if looked_up else remembered,
            )
            try:
                if is_quick(batch):
                    check(topic, rule, batch, known)
                else:
                    await self._run(check, topic, rule, batch, known)
            except NotLookedUp as missing:
                looked_up.update(await self._view.look_up(missing.refs))
            except KafkaError as error:
                return error
            else:
                return None

    def stop(self) -> None:
        self._mirror.stop()
        self._view.close()
