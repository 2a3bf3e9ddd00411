"""Records of topics that want schemas, looked at before they are produced.

A broker refuses a batch with the places of its bad records and what is wrong with each, and librdkafka does
not hand that on. So a gateway judges by the same rules, by the registry that it has itself: what is bad is
refused with the broker's sentence, and does not take the rest of its batch along. Whatever it lets pass, the
broker judges again.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Headers, Record
from headrace.http.gateway.topic_rules import TopicRules
from headrace.http.problems import Problem
from headrace.http.reach import Reach
from headrace.http.registry.threads import in_registry_thread
from headrace.registry.schema_ids import HEADERS, SchemaRef
from headrace.registry.validation import (
    UNREGISTERED,
    KnownSchemas,
    NotLookedUp,
    RegisteredSchema,
    Rule,
    invalid_records,
)
from headrace.registry.validation import Record as Judged

if TYPE_CHECKING:
    from headrace.http.registry.registry import Registry
    from headrace.registry.formats import Reference, Schema
    from headrace.registry.library import Library
    from headrace.registry.record_names import RecordNames
    from headrace.registry.records import SchemaValue
    from headrace.registry.state import State

REMEMBERED: Final = 1000  # schemas, with the names of their records
BROKERS_TOPIC: Final = "_schemas"  # that brokers judge by

Answer = TypeVar("Answer")

_NAMES: Final = {each.decode(): each for each in HEADERS.values()}

_Referenced = Mapping["Reference", "Schema"]

logger = logging.getLogger(__name__)


class _Ask(Protocol):
    """How the registry is asked: whether it reads on before, or goes by what it has read."""

    def __call__(self, question: "Callable[[State, Library], Answer]", /) -> Answer: ...


class Validation:
    """What a gateway knows of rules about schemas; there is one."""

    def __init__(self, reach: Reach, registry: "Callable[[], Registry]") -> None:
        self._rules = TopicRules(reach)
        self._registry = registry
        self._is_brokers_registry = reach.settings.schemas_topic == BROKERS_TOPIC
        self._names: dict[Schema, RecordNames] = {}

    async def refused(self, topic: str, records: Sequence[Record]) -> Mapping[int, str]:
        """The places of records that the topic's brokers would refuse, each with why."""
        if not self._is_brokers_registry or not records:
            return {}
        rule = await self._rules.of(topic)
        if rule is None:
            return {}
        try:
            return await in_registry_thread(partial(self._judge, topic, rule, records))
        except (ClientError, Problem) as error:
            logger.info("the schemas of %s are left to the brokers to judge: %s", topic, error)
            return {}

    def _judge(self, topic: str, rule: Rule, records: Sequence[Record]) -> Mapping[int, str]:
        """By what is known of schemas; what looks wrong then, by all there is to know."""
        judged: list[Judged] = [(each.key, each.value, _named(each.headers)) for each in records]
        registry = self._registry()
        if not self._wrong(registry.recall, topic, rule, judged):
            return {}
        return dict(self._wrong(registry.ask, topic, rule, judged))

    def _wrong(self, ask: "_Ask", topic: str, rule: Rule, records: Sequence[Judged]) -> list[tuple[int, str]]:
        from headrace.registry.record_names import refs_of  # noqa: PLC0415  for who has such topics

        keys, values = ask(lambda state, _: [refs_of(state, f"{topic}-{what}") for what in ("key", "value")])
        schemas: dict[SchemaRef, RegisteredSchema] = {}
        while True:
            try:
                return invalid_records(topic, rule, records, KnownSchemas(keys, values, schemas))
            except NotLookedUp as missing:
                schemas |= self._look_up(ask, missing.refs)

    def _look_up(self, ask: "_Ask", refs: set[SchemaRef]) -> dict[SchemaRef, RegisteredSchema]:
        from headrace.registry.record_names import live_versions, referenced  # noqa: PLC0415

        def look(state: "State", _: "Library") -> "dict[SchemaRef, tuple[list[SchemaValue], _Referenced]]":
            places = {ref: live_versions(state, ref) for ref in refs}
            return {ref: (live, referenced(state, live[0]) if live else {}) for ref, live in places.items()}

        found = dict.fromkeys(refs, UNREGISTERED)
        for ref, (live, referred_to) in ask(look).items():
            if live:
                names = self._names_of(live[0], referred_to)
                found[ref] = RegisteredSchema(frozenset(each.subject for each in live), names)
        return found

    def _names_of(self, value: "SchemaValue", referred_to: "_Referenced") -> "RecordNames | str":
        """Remembered, unless it is a complaint: what the schema refers to may be there tomorrow."""
        from headrace.registry.record_names import names_of  # noqa: PLC0415

        known = self._names.get(value.schema)
        if known is not None:
            return known
        names = names_of(value, referred_to)
        if not isinstance(names, str):
            if len(self._names) >= REMEMBERED:
                self._names.clear()
            self._names[value.schema] = names
        return names


def _named(headers: Headers) -> list[tuple[bytes, bytes | None]]:
    """Those headers that name schemas."""
    return [(_NAMES[name], value) for name, value in headers if name in _NAMES]
