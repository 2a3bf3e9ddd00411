"""Whether records have schemas of their topic's subjects, as brokers and gateways look at them. Pure.

A record of a validated topic says which schema it has (`claims`). If that is unknown, or is another
subject's, it is refused; a null is nothing, and passes. Which subject that is goes by the topic
(TOPIC-value), by the name of the record in its schema, or by both (TOPIC-NAME).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from headrace.registry.claims import NoClaim, Ref, claim, path_at, shown

if TYPE_CHECKING:
    from headrace.registry.naming import RecordNames

KEY, VALUE = "confluent.key.schema.validation", "confluent.value.schema.validation"
KEY_STRATEGY, VALUE_STRATEGY = "confluent.key.subject.name.strategy", "confluent.value.subject.name.strategy"
MOST_TOLD: Final = 100  # characters of a name, or of what is wrong with a schema

Headers = Sequence[tuple[bytes, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers]
"""Key, value, and headers, of which those count that name schemas."""


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
    def of(cls, values: Mapping[str, object]) -> "Rule | None":
        """The rule among a topic's settings, if there is one; ValueError if nobody knows its strategy."""
        rule = cls(_strategy(values, KEY, KEY_STRATEGY), _strategy(values, VALUE, VALUE_STRATEGY))
        return rule if any(rule) else None


class Registered(NamedTuple):
    """A schema as the registry has it: where, and what its records are called or why nobody can tell."""

    subjects: frozenset[str]
    names: "RecordNames | str"


NOBODYS: Final = Registered(frozenset(), "it is not there")


class Known(NamedTuple):
    """The schemas of the topic's two subjects; and what is known of any, as far as it was looked up."""

    keys: Collection[Ref]
    values: Collection[Ref]
    schemas: Mapping[Ref, Registered]


class NotLookedUp(Exception):
    """These schemas have to be looked up before anything can be said."""

    def __init__(self, refs: set[Ref]) -> None:
        super().__init__(f"{len(refs)} schemas")
        self.refs = refs


def wrong(
    topic: str, rule: Rule, records: Iterable[Record], known: Known, most: int | None = None
) -> list[tuple[int, str]]:
    """The places of the first `most` records that do not belong into the topic, each with why.

    NotLookedUp if that goes by schemas that `known` has nothing about. Once it has, there will be no others.
    """
    missing: set[Ref] = set()
    found = list(islice(_wrong(topic, rule, records, known, missing), most))
    if missing:
        raise NotLookedUp(missing)
    return found


_Judge = Callable[[bytes, Headers], str | None]
"""Why a key or a value, with its record's headers, is not to be taken; None if it is."""


def _strategy(values: Mapping[str, object], wanted: str, strategy: str) -> Strategy | None:
    if str(values.get(wanted, "")).lower() != "true":
        return None
    return Strategy(str(values.get(strategy, Strategy.TOPIC)))


def _wrong(
    topic: str, rule: Rule, records: Iterable[Record], known: Known, missing: set[Ref]
) -> Iterator[tuple[int, str]]:
    of_key = _judge("key", topic, rule.keys, known.keys, known, missing)
    of_value = _judge("value", topic, rule.values, known.values, known, missing)
    for place, (key, value, headers) in enumerate(records):
        why = None if of_key is None or key is None else of_key(key, headers)
        if why is None and of_value is not None and value is not None:
            why = of_value(value, headers)
        if why is not None:
            yield place, why


def _judge(  # noqa: PLR0917
    what: str, topic: str, strategy: Strategy | None, refs: Collection[Ref], known: Known, missing: set[Ref]
) -> _Judge | None:
    match strategy:
        case None:
            return None
        case Strategy.TOPIC:
            return partial(_by_topic, what, f"{topic}-{what}", refs)
        case Strategy.RECORD | Strategy.TOPIC_RECORD:
            before = "" if strategy is Strategy.RECORD else f"{topic}-"
            return partial(_by_record, what, before, known.schemas, missing)


def _by_topic(what: str, subject: str, refs: Collection[Ref], data: bytes, headers: Headers) -> str | None:
    try:
        ref, _, _ = claim(what, data, headers)
    except NoClaim as error:
        return f"its {what} {error}"
    return None if ref in refs else f"its {what} has schema {shown(ref)}, which is none of {subject}"


def _by_record(  # noqa: PLR0917
    what: str,
    before: str,
    schemas: Mapping[Ref, Registered],
    missing: set[Ref],
    data: bytes,
    headers: Headers,
) -> str | None:
    try:
        ref, said, end = claim(what, data, headers)
        schema = schemas.get(ref)
        if schema is None:
            missing.add(ref)
            return None
        by_path = not isinstance(schema.names, str) and schema.names.by_path
        why = _why_not(schema, before, path_at(said, end) if by_path else ())
    except NoClaim as error:
        return f"its {what} {error}"
    return None if why is None else f"its {what} has schema {shown(ref)}, which {why}"


def _why_not(schema: Registered, before: str, path: tuple[int, ...]) -> str | None:
    if not schema.subjects:
        return "is not there"
    if isinstance(schema.names, str):
        return f"cannot be understood: {_short(schema.names)}"
    names = schema.names.names.get(path)
    if names is None:
        return f"has no message {_short('.'.join(map(str, path)))}" if path else "has no name for its records"
    if any(f"{before}{name}" in schema.subjects for name in names):
        return None
    return f"is none of {before}{_short(min(names))}"


def _short(text: str) -> str:
    """What a stranger wrote, as far as an answer that names a hundred records can tell it."""
    return text if len(text) <= MOST_TOLD else f"{text[:MOST_TOLD]}…"
