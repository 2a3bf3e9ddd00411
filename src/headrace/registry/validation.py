"""Whether the schemas of records belong to the subjects of their topic; for brokers and gateways. Pure.

A record of a validated topic names its schema (`schema_ids`). The record is refused if that schema is unknown
or is registered for other subjects only; a null key or value passes. The subject is made of the topic's name
(TOPIC-value), of the record's name in its schema, or of both (TOPIC-NAME).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.registry.schema_ids import NoSchemaId, SchemaRef, format_ref, read_message_path, read_schema_id

if TYPE_CHECKING:
    from headrace.registry.record_names import RecordNames

KEY, VALUE = "confluent.key.schema.validation", "confluent.value.schema.validation"
KEY_STRATEGY, VALUE_STRATEGY = "confluent.key.subject.name.strategy", "confluent.value.subject.name.strategy"
MAX_SHOWN: Final = 100  # characters of a name, or of an error, in a message that may list a hundred records

Headers = Sequence[tuple[bytes, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers; only the headers that name schemas are read."""


class Strategy(StrEnum):
    """How the subject of a record is named: the class names are Confluent's."""

    TOPIC = "io.confluent.kafka.serializers.subject.TopicNameStrategy"
    RECORD = "io.confluent.kafka.serializers.subject.RecordNameStrategy"
    TOPIC_RECORD = "io.confluent.kafka.serializers.subject.TopicRecordNameStrategy"


class Rule(NamedTuple):
    """The validation that a topic is configured for; None is for keys or values that are not validated."""

    keys: Strategy | None
    values: Strategy | None

    @classmethod
    def of(cls, settings: Mapping[str, object]) -> "Rule | None":
        """Return the rule in a topic's settings, if there is one; ValueError if a strategy is unknown."""
        rule = cls(_strategy(settings, KEY, KEY_STRATEGY), _strategy(settings, VALUE, VALUE_STRATEGY))
        return rule if any(rule) else None


class RegisteredSchema(NamedTuple):
    """The subjects that have a schema, and the names of its records or the reason why these are unknown."""

    subjects: frozenset[str]
    names: "RecordNames | str"


UNREGISTERED: Final = RegisteredSchema(frozenset(), "it is not registered")


class KnownSchemas(NamedTuple):
    """The schemas of the topic's two subjects, and all schemas that have been looked up so far."""

    keys: Collection[SchemaRef]
    values: Collection[SchemaRef]
    schemas: Mapping[SchemaRef, RegisteredSchema]


class NotLookedUp(Exception):
    """These schemas have to be looked up first."""

    def __init__(self, refs: set[SchemaRef]) -> None:
        super().__init__(f"{len(refs)} schemas")
        self.refs = refs


def invalid_records(
    topic: str, rule: Rule, records: Iterable[Record], known: KnownSchemas, most: int | None = None
) -> list[tuple[int, str]]:
    """Return the indexes of the first `most` records that the topic refuses, each with the reason.

    NotLookedUp is raised if schemas are missing in `known`. It names all of them at once.
    """
    missing: set[SchemaRef] = set()
    found = list(islice(_invalid(topic, rule, records, known, missing), most))
    if missing:
        raise NotLookedUp(missing)
    return found


_Check = Callable[[bytes, Headers], str | None]
"""Returns why a key or value, with its record's headers, is refused; None if it is accepted."""


def _strategy(settings: Mapping[str, object], enabled: str, strategy: str) -> Strategy | None:
    if str(settings.get(enabled, "")).lower() != "true":
        return None
    return Strategy(str(settings.get(strategy, Strategy.TOPIC)))


def _invalid(
    topic: str, rule: Rule, records: Iterable[Record], known: KnownSchemas, missing: set[SchemaRef]
) -> Iterator[tuple[int, str]]:
    def check(part: str, strategy: Strategy | None, refs: Collection[SchemaRef]) -> _Check | None:
        if strategy is None:
            return None
        if strategy is Strategy.TOPIC:
            return partial(_check_by_topic, part, f"{topic}-{part}", refs)
        prefix = "" if strategy is Strategy.RECORD else f"{topic}-"
        return partial(_check_by_record, part, prefix, known.schemas, missing)

    check_key = check("key", rule.keys, known.keys)
    check_value = check("value", rule.values, known.values)
    for index, (key, value, headers) in enumerate(records):
        why = None if check_key is None or key is None else check_key(key, headers)
        if why is None and check_value is not None and value is not None:
            why = check_value(value, headers)
        if why is not None:
            yield index, why


def _check_by_topic(
    part: str, subject: str, refs: Collection[SchemaRef], data: bytes, headers: Headers
) -> str | None:
    try:
        ref, _, _ = read_schema_id(part, data, headers)
    except NoSchemaId as error:
        return f"its {part} {error}"
    return None if ref in refs else f"its {part} has schema {format_ref(ref)}, which is none of {subject}"


def _check_by_record(  # noqa: PLR0917
    part: str,
    prefix: str,
    schemas: Mapping[SchemaRef, RegisteredSchema],
    missing: set[SchemaRef],
    data: bytes,
    headers: Headers,
) -> str | None:
    try:
        ref, source, end = read_schema_id(part, data, headers)
        schema = schemas.get(ref)
        if schema is None:
            missing.add(ref)
            return None
        has_path = not isinstance(schema.names, str) and schema.names.by_path
        why = _mismatch(schema, prefix, read_message_path(source, end)[0] if has_path else ())
    except NoSchemaId as error:
        return f"its {part} {error}"
    return None if why is None else f"its {part} has schema {format_ref(ref)}, which {why}"


def _mismatch(schema: RegisteredSchema, prefix: str, path: tuple[int, ...]) -> str | None:
    if not schema.subjects:
        return "is not registered"
    if isinstance(schema.names, str):
        return f"cannot be parsed: {_shorten(schema.names)}"
    names = schema.names.names.get(path)
    if names is None:
        dotted = _shorten(".".join(map(str, path)))
        return f"has no message {dotted}" if path else "has no name for its records"
    if any(f"{prefix}{name}" in schema.subjects for name in names):
        return None
    return f"is none of {prefix}{_shorten(min(names))}"


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"
