"""Validation of records for topics that require schemas, before they are produced.

A broker refuses a whole batch and names its invalid records (INVALID_RECORD), but librdkafka does not report
which. So the gateway validates by the same rules, with its own registry: an invalid record is refused with
the broker's message, and the rest of its batch is produced. The broker validates again what it gets.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Final, Protocol, TypeVar

from cachetools import LRUCache

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Record
from headrace.gateway.problems import Problem
from headrace.gateway.reach import Reach
from headrace.gateway.registry.registry import SchemaRegistry, in_registry_thread
from headrace.gateway.rest.topic_cache import TopicRules
from headrace.registry import validation
from headrace.registry.formats import Reference, Schema
from headrace.registry.library import Library
from headrace.registry.record_names import RecordNames, live_versions, names_of, referenced, refs_of
from headrace.registry.records import SchemaValue
from headrace.registry.schema_ids import HEADERS, SchemaRef
from headrace.registry.state import RegistryState
from headrace.registry.validation import Record as Unvalidated

CACHED: Final = 1000  # schemas, with the names of their records
BROKERS_TOPIC: Final = "_schemas"  # whose schemas brokers validate by

Answer = TypeVar("Answer")

_NAMES: Final = {each.decode(): each for each in HEADERS.values()}

_Referenced = Mapping[Reference, Schema]

logger = logging.getLogger(__name__)


class _Ask(Protocol):
    """Either Registry.ask, which first reads to the end of the topic, or Registry.recall, which does not."""

    def __call__(self, question: Callable[[RegistryState, Library], Answer], /) -> Answer: ...


class Validation:
    """Validates records by their topics' rules about schemas."""

    def __init__(self, reach: Reach, registry: SchemaRegistry) -> None:
        self._rules = TopicRules(reach)
        self._registry = registry
        self._is_brokers_registry = reach.settings.schemas_topic == BROKERS_TOPIC
        self._lock = Lock()
        self._names: LRUCache[Schema, RecordNames] = LRUCache(CACHED)

    async def refused(self, topic: str, records: Sequence[Record]) -> Mapping[int, str]:
        """Return the indexes of records that the topic's brokers would refuse, each with the reason."""
        if not self._is_brokers_registry or not records:
            return {}
        rule = await self._rules.of(topic)
        if rule is None:
            return {}
        try:
            return await in_registry_thread(partial(self._validate, topic, rule, records))
        except (ClientError, Problem) as error:
            logger.info("only brokers validate the schemas of %s: %s", topic, error)
            return {}

    def _validate(self, topic: str, rule: validation.Rule, records: Sequence[Record]) -> Mapping[int, str]:
        """Validate by what the registry has read so far, and by its newest state if that finds an error."""
        unvalidated: list[Unvalidated] = [
            (
                record.key,
                record.value,
                [(_NAMES[name], value) for name, value in record.headers if name in _NAMES],
            )
            for record in records
        ]
        if not self._invalid(self._registry.recall, topic, rule, unvalidated):
            return {}
        return dict(self._invalid(self._registry.ask, topic, rule, unvalidated))

    def _invalid(
        self, ask: _Ask, topic: str, rule: validation.Rule, records: Sequence[Unvalidated]
    ) -> list[tuple[int, str]]:
        keys, values = ask(lambda state, _: [refs_of(state, f"{topic}-{what}") for what in ("key", "value")])
        schemas: dict[SchemaRef, validation.RegisteredSchema] = {}
        while True:
            try:
                return validation.invalid_records(
                    topic, rule, records, validation.KnownSchemas(keys, values, schemas)
                )
            except validation.NotLookedUp as missing:
                schemas |= self._look_up(ask, missing.refs)

    def _look_up(self, ask: _Ask, refs: set[SchemaRef]) -> dict[SchemaRef, validation.RegisteredSchema]:
        def look(state: RegistryState, _: Library) -> dict[SchemaRef, tuple[list[SchemaValue], _Referenced]]:
            versions = {ref: live_versions(state, ref) for ref in refs}
            return {ref: (live, referenced(state, live[0]) if live else {}) for ref, live in versions.items()}

        found = dict.fromkeys(refs, validation.UNREGISTERED)
        for ref, (live, referred_to) in ask(look).items():
            if live:
                names = self._names_of(live[0], referred_to)
                found[ref] = validation.RegisteredSchema(frozenset(each.subject for each in live), names)
        return found

    def _names_of(self, value: SchemaValue, referred_to: _Referenced) -> RecordNames | str:
        """Return the names of the schema's records, or why they are unknown.

        An error is not cached, since a missing reference may be registered later.
        """
        with self._lock:
            known = self._names.get(value.schema)
        if known is not None:
            return known
        names = names_of(value, referred_to)
        if not isinstance(names, str):
            with self._lock:
                self._names[value.schema] = names
        return names
