"""A cache of schemas and the names of their record types, filled when a record refers to a schema.

Parsing a schema takes a thread and, for Protobuf, twenty milliseconds. The names are cached until a schema is
deleted permanently; the subjects of a schema, until the registry changes.
"""

import asyncio
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Final

from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import UNREGISTERED, RegisteredSchema

if TYPE_CHECKING:
    from headrace.registry.record_names import RecordNames
    from headrace.registry.state import State

REMEMBERED: Final = 10_000  # schemas
MOST_NAMES: Final = 100_000  # of all schemas
_STEP: Final = 500  # schemas, before other requests are served


class SchemaNames:
    """The schemas that records have referred to; ids are those of the default context."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self.schemas: dict[SchemaRef, RegisteredSchema] = {}  # registered ones that were looked up
        self._changes = 0  # how often the registry has changed
        self._names: dict[SchemaRef, RecordNames | str] = {}
        self._count = 0  # the number of cached names
        self._source: tuple[State | None, int] = (None, 0)  # the state, and its permanent deletions

    def forget(self) -> None:
        """Invalidate the subjects of all schemas, because the registry has changed."""
        self._changes += 1
        self.schemas.clear()

    async def look_up(
        self, state: "State | None", refs: Iterable[SchemaRef]
    ) -> Mapping[SchemaRef, RegisteredSchema]:
        """Return every schema in `refs`, UNREGISTERED for those that do not exist."""
        changes = self._changes
        found: dict[SchemaRef, RegisteredSchema] = {}
        for number, ref in enumerate(refs):
            if not number % _STEP:
                await asyncio.sleep(0)
            found[ref] = await self._look_up_one(state, ref)
        if changes == self._changes:
            registered = {ref: each for ref, each in found.items() if each.subjects}
            if len(self.schemas) + len(registered) > self._most:
                self.schemas.clear()
            self.schemas.update(islice(registered.items(), self._most))
        return found

    async def _look_up_one(self, state: "State | None", ref: SchemaRef) -> RegisteredSchema:
        from headrace.registry.record_names import live_versions, names_of, referenced  # noqa: PLC0415  loaded on demand

        live = [] if state is None else live_versions(state, ref)
        if state is None or not live:
            return UNREGISTERED
        source = (state, state.permanent_deletions)
        if self._source != source:
            self._clear_names()
            self._source = source
        names = self._names.get(ref)
        if names is None:
            names = await asyncio.to_thread(names_of, live[0], referenced(state, live[0]))
            if self._source == source == (state, state.permanent_deletions):
                self._remember(ref, names)
        return RegisteredSchema(frozenset(each.subject for each in live), names)

    def _clear_names(self) -> None:
        self._names.clear()
        self._count = 0

    def _remember(self, ref: SchemaRef, names: "RecordNames | str") -> None:
        size = 1 if isinstance(names, str) else 1 + len(names.names)
        if len(self._names) >= self._most or self._count + size > MOST_NAMES:
            self._clear_names()
        self._names[ref] = names
        self._count += size
