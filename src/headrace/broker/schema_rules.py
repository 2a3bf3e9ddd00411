"""Whether records carry ids of schemas that their topic's subjects have. Pure.

The registry's wire format is a zero, four bytes of an id, and the data. A record of a validated topic whose
id is unknown, or is another subject's, is refused; a null is nothing, and passes. Which subject that is goes
by the topic (TOPIC-value), by the name of the record in its schema, or by both (TOPIC-NAME).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.broker.schema_claims import PREFIX, NoPath, path_at, schema_id
from headrace.broker.settings import Value
from headrace.protocol.batch import read_batch
from headrace.protocol.compression import Buffer
from headrace.protocol.errors import InvalidRecord
from headrace.protocol.records import keys_and_values

if TYPE_CHECKING:
    from headrace.registry.naming import RecordNames

KEY, VALUE = "confluent.key.schema.validation", "confluent.value.schema.validation"
KEY_STRATEGY, VALUE_STRATEGY = "confluent.key.subject.name.strategy", "confluent.value.subject.name.strategy"
MOST_NAMED: Final = 100  # bad records of a batch that the answer tells of
MOST_TOLD: Final = 100  # characters of a name, or of what is wrong with a schema
MOST_RECORDS: Final = 100_000  # of a batch that is looked at: a few bytes can unpack to millions
MOST_BYTES: Final = 32 * 1024 * 1024  # unpacked


class Strategy(StrEnum):
    """What a record's subject is made of, by the names of Confluent's classes."""

    TOPIC = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    RECORD = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    TOPIC_RECORD = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"


class Rule(NamedTuple):
    """What a topic wants to have looked at: keys, values or both, each by a subject of its own."""

    keys: Strategy | None
    values: Strategy | None

    @classmethod
    def of(cls, values: Mapping[str, Value]) -> "Rule | None":
        """The rule among a topic's settings, if there is one."""
        rule = cls(
            Strategy(str(values[KEY_STRATEGY])) if values[KEY] else None,
            Strategy(str(values[VALUE_STRATEGY])) if values[VALUE] else None,
        )
        return rule if any(rule) else None


class Registered(NamedTuple):
    """A schema as the registry has it: where, and what its records are called or why nobody can tell."""

    subjects: frozenset[str]
    names: "RecordNames | str"


class Known(NamedTuple):
    """The ids of the topic's two subjects; and schemas by id, as far as they have been looked up."""

    keys: Collection[int]
    values: Collection[int]
    schemas: Mapping[int, Registered]


class WrongSchema(InvalidRecord):
    """Records whose schema is not one of the topic's; `records` are their places in the batch, and why."""

    def __init__(self, records: list[tuple[int, str]]) -> None:
        first, why = records[0]
        super().__init__(f"record {first} of the batch: {why}")
        self.records = records


class NotLookedUp(Exception):
    """These schemas have to be looked up before anything can be said."""

    def __init__(self, ids: set[int]) -> None:
        super().__init__(f"{len(ids)} schemas")
        self.ids = ids


def check(topic: str, rule: Rule, batch: Buffer, known: Known) -> None:
    """WrongSchema if a record of the batch does not belong into the topic; no batch is refused as well.

    NotLookedUp if that goes by schemas that `known` has nothing about. Once it has, there will be no others.
    """
    missing: set[int] = set()
    wrong = list(islice(_wrong(topic, rule, batch, known, missing), MOST_NAMED))
    if missing:
        raise NotLookedUp(missing)
    if wrong:
        raise WrongSchema(wrong)


_Judge = Callable[[bytes], str | None]
"""Why the data of a key or of a value is not to be taken; None if it is."""


def _wrong(
    topic: str, rule: Rule, batch: Buffer, known: Known, missing: set[int]
) -> Iterator[tuple[int, str]]:
    view = memoryview(batch)
    header = read_batch(view)
    if header.records_count > MOST_RECORDS:
        raise InvalidRecord(
            f"{header.records_count:,} records in one batch, whose schemas are looked at: "
            f"{MOST_RECORDS:,} is the most"
        )
    of_key = _judge("key", topic, rule.keys, known.keys, known, missing)
    of_value = _judge("value", topic, rule.values, known.values, known, missing)
    for place, (key, value) in enumerate(keys_and_values(view, header, max_bytes=MOST_BYTES)):
        why = None if of_key is None or key is None else of_key(key)
        if why is None and of_value is not None and value is not None:
            why = of_value(value)
        if why is not None:
            yield place, why


def _judge(  # noqa: PLR0917
    what: str, topic: str, strategy: Strategy | None, ids: Collection[int], known: Known, missing: set[int]
) -> _Judge | None:
    match strategy:
        case None:
            return None
        case Strategy.TOPIC:
            return partial(_by_topic, what, f"{topic}-{what}", ids)
        case Strategy.RECORD | Strategy.TOPIC_RECORD:
            before = "" if strategy is Strategy.RECORD else f"{topic}-"
            return partial(_by_record, what, before, known.schemas, missing)


def _by_topic(what: str, subject: str, ids: Collection[int], data: bytes) -> str | None:
    found = schema_id(data)
    if found is None:
        return _nothing_named(what)
    return None if found in ids else f"its {what} has schema {found}, which is none of {subject}"


def _by_record(
    what: str, before: str, schemas: Mapping[int, Registered], missing: set[int], data: bytes
) -> str | None:
    found = schema_id(data)
    if found is None:
        return _nothing_named(what)
    schema = schemas.get(found)
    if schema is None:
        missing.add(found)
        return None
    told = f"its {what} has schema {found}"
    if not schema.subjects:
        return f"{told}, which is not there"
    if isinstance(schema.names, str):
        return f"{told}, which cannot be understood: {_short(schema.names)}"
    try:
        path = path_at(data, PREFIX) if schema.names.by_path else ()
    except NoPath as error:
        return f"its {what} {error}"
    names = schema.names.names.get(path)
    if names is None:
        which = f"no message {_short('.'.join(map(str, path)))}" if path else "no name for its records"
        return f"{told}, which has {which}"
    if any(f"{before}{name}" in schema.subjects for name in names):
        return None
    return f"{told}, which is none of {before}{_short(min(names))}"


def _short(text: str) -> str:
    """What a stranger wrote, as far as an answer that names a hundred records can tell it."""
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]}…"


def _nothing_named(what: str) -> str:
    return f"its {what} names no schema: expected a zero byte, and an id of four bytes"
