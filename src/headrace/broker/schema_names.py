"""Schemas, with what their records are called: looked up when a record names one, and remembered.

To read a schema takes a thread and, for Protobuf, twenty milliseconds. What it says is remembered as long as
nothing goes from the registry for good; who has it, only until there is something new.
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
MOST_NAMES: Final = 100_000  # of all of them together
_AT_ONCE: Final = 500  # schemas, before others are served


class SchemaNames:
    """What a broker knows of schemas that records have named; ids are those of the default context."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self.schemas: dict[SchemaRef, RegisteredSchema] = {}  # that are there, and were asked for
        self._news = 0  # how often there was something new
        self._names: dict[SchemaRef, RecordNames | str] = {}
        self._count = 0  # of names in there
        self._read_of: tuple[State | None, int] = (None, 0)  # the state, and how often something went from it

    def forget(self) -> None:
        """There is something new: another subject may have a schema, or one may have it no more."""
        self._news += 1
        self.schemas.clear()

    async def look_up(
        self, state: "State | None", refs: Iterable[SchemaRef]
    ) -> Mapping[SchemaRef, RegisteredSchema]:
        """Each of these, those that are not there included."""
        news = self._news
        found: dict[SchemaRef, RegisteredSchema] = {}
        for number, ref in enumerate(refs):
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
            found[ref] = await self._one(state, ref)
        if news == self._news:
            there = {ref: each for ref, each in found.items() if each.subjects}
            if len(self.schemas) + len(there) > self._most:
                self.schemas.clear()
            self.schemas.update(islice(there.items(), self._most))
        return found

    async def _one(self, state: "State | None", ref: SchemaRef) -> RegisteredSchema:
        from headrace.registry.record_names import live_versions, names_of, referenced  # noqa: PLC0415  few need it

        live = [] if state is None else live_versions(state, ref)
        if state is None or not live:
            return UNREGISTERED
        read_of = (state, state.permanent_deletions)
        if self._read_of != read_of:
            self._start(read_of)
        names = self._names.get(ref)
        if names is None:
            names = await asyncio.to_thread(names_of, live[0], referenced(state, live[0]))
            if self._read_of == read_of == (state, state.permanent_deletions):
                self._remember(ref, names)
        return RegisteredSchema(frozenset(each.subject for each in live), names)

    def _start(self, read_of: "tuple[State, int]") -> None:
        self._names.clear()
        self._count = 0
        self._read_of = read_of

    def _remember(self, ref: SchemaRef, names: "RecordNames | str") -> None:
        size = 1 if isinstance(names, str) else 1 + len(names.names)
        if len(self._names) >= self._most or self._count + size > MOST_NAMES:
            self._names.clear()
            self._count = 0
        self._names[ref] = names
        self._count += size
