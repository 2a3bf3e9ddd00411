"""The schema registry of a gateway: asked by any thread, one after the other.

    app.state.registry.schema(7).canonical
    app.state.registry.register("orders-value", Schema(SchemaType.AVRO, '"string"')).id

Whatever is asked, all that was acknowledged by any gateway before is known; but for schemas by id. What an
id means never changes, so one that is known is answered from memory, also when no broker answers. That it
has been deleted for good, by another gateway, may take FRESH_S to be noticed.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from threading import Lock
from typing import Annotated, Final, TypeVar

from fastapi import Depends, Request

from headrace.client.errors import ClientError, Unreachable
from headrace.http.problems import Problem
from headrace.http.reach import Reach
from headrace.http.registry.store import Overtaken, Store
from headrace.registry import names
from headrace.registry.comparison import NotCompared, Verdicts
from headrace.registry.formats import Parsed, Reference, Schema
from headrace.registry.library import Library, parse_or_refuse
from headrace.registry.records import Decision, SchemaValue
from headrace.registry.refusals import Invalid, NoSuchSchema
from headrace.registry.registration import SubmittedSchema, lookup, register
from headrace.registry.state import State

FRESH_S: Final = 5.0
ATTEMPTS: Final = 100  # to be the first to write what was decided, while others write too
_KNOWN: Final = 10_000

Answer = TypeVar("Answer")


class Registry:
    """What a gateway's routes ask."""

    def __init__(self, reach: Reach) -> None:
        self._store = Store(reach)
        self._lock = Lock()
        self._begun = 0  # how often reading has begun, and
        self._done = 0  # which of those was the last to succeed, and
        self._failed = 0  # which to fail
        self._failure: Exception | None = None
        self._read_at = float("-inf")
        self._known: dict[tuple[str, int | str, str], SchemaValue] = {}  # by what was asked, and of what
        self._known_by = self._store.state, 0

    # -- for everybody in the gateway ----------------------------------------------------------

    def schema(self, schema_id: int, subject: str = "") -> Parsed:
        """The schema of an id, understood; NoSuchSchema if there is none."""
        return self.understood(self.by_id(schema_id, subject))

    def understood(self, value: SchemaValue) -> Parsed:
        """A schema that is there, understood."""
        with self._lock:
            return self._store.library.parsed_version(value)

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> SchemaValue:
        """The version that the schema is or becomes, with its id; a Refusal if it may not be one."""
        self.understand(subject, schema)
        return self.change(
            lambda state, library: register(
                state,
                library,
                state.settings.resolve_alias(subject),
                SubmittedSchema(schema),
                normalize=normalize,
            )
        )

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> SchemaValue:
        """The version of the subject that says the same; a Refusal if there is none."""
        self.understand(subject, schema)
        return self.ask(
            lambda state, library: lookup(
                state,
                library,
                state.settings.resolve_alias(subject),
                SubmittedSchema(schema),
                normalize=normalize,
            )
        )

    def latest(self, subject: str) -> SchemaValue:
        """The newest version of a subject."""
        return self.ask(lambda state, _: state.version(state.settings.resolve_alias(subject), -1))

    def by_id(self, schema_id: int, subject: str = "") -> SchemaValue:
        """The schema of an id, as it is kept."""
        return self._kept(("by id", schema_id, subject), lambda state: state.by_id(schema_id, subject))

    def of_subject(self, schema_id: int, subject: str) -> SchemaValue:
        """The same, as a version of the subject; Invalid if it is none of its versions."""

        def find(state: State) -> SchemaValue:
            meant = names.normal(state.settings.resolve_alias(subject))
            value = state.by_id(schema_id, meant)
            if value.subject != meant:
                raise Invalid(f"schema {schema_id} is none of subject {subject!r}: register it there first")
            return value

        return self._kept(("of subject", schema_id, subject), find)

    def by_guid(self, guid: str) -> SchemaValue:
        """The schema that is called so in every registry."""
        return self._kept(("by guid", guid, ""), lambda state: state.by_guid(guid))

    def _kept(self, which: tuple[str, int | str, str], find: Callable[[State], SchemaValue]) -> SchemaValue:
        known = self._known.get(which)
        if known is not None and time.monotonic() - self._read_at < FRESH_S:
            return known

        def found(state: State) -> SchemaValue:
            self._known[which] = value = find(state)
            return value

        try:
            return self.ask(lambda state, _: found(state))
        except Unreachable:
            with self._lock, suppress(NoSuchSchema):
                return found(self._store.state)
            raise

    # -- for the routes ------------------------------------------------------------------------

    def understand(self, subject: str, schema: Schema) -> None:
        """Have a schema understood before it is asked about; Invalid if it is none.

        That may take a while, for it is a stranger's, and meanwhile nobody else is to wait.
        """
        if schema.references:
            self.ask(lambda _state, _library: None)  # so that what it refers to is there
        with self._lock:
            state, library = self._store.state, self._store.library
            schema = library.pinned(subject, schema)
            forgotten = state.permanent_deletions
            if library.cached(subject, schema) is not None:
                return

        def resolve(reference: Reference) -> Schema:
            with self._lock:
                return library.resolved(subject, reference)

        parsed = parse_or_refuse(schema, resolve)
        with self._lock:
            if state.permanent_deletions == forgotten:
                library.cache(subject, schema, parsed)

    def ask(self, question: Callable[[State, Library], Answer]) -> Answer:
        """The answer by all that was written before it was asked."""
        return self._with_comparisons(lambda known: self._ask(question, known))

    def recall(self, question: Callable[[State, Library], Answer]) -> Answer:
        """The answer by what has been read so far, which may be nothing; no broker is asked."""
        with self._lock:
            return question(self._store.state, self._store.library)

    def _ask(self, question: Callable[[State, Library], Answer], known: Verdicts) -> Answer:
        asked = self._begun
        with self._lock:
            self._catch_up_since(asked)
            with self._store.library.comparisons.only(known):
                return question(self._store.state, self._store.library)

    def change(self, decide: Callable[[State, Library], Decision[Answer]]) -> Answer:
        """Carry out what is decided, by all that was written before; whoever is overtaken decides again."""
        return self._with_comparisons(lambda known: self._change(decide, known))

    def _change(self, decide: Callable[[State, Library], Decision[Answer]], known: Verdicts) -> Answer:
        asked = self._begun
        with self._lock:
            for _ in range(ATTEMPTS):
                self._catch_up_since(asked)
                asked = self._begun
                with self._store.library.comparisons.only(known):
                    decision = decide(self._store.state, self._store.library)
                if not decision.records:
                    return decision.answer
                try:
                    self._store.write(decision.records)
                except Overtaken:
                    continue
                self._note()
                return decision.answer
        raise _busy()

    @staticmethod
    def _with_comparisons(attempt: Callable[[Verdicts], Answer]) -> Answer:
        """What comes of it, once the comparisons that it needs are made: while nobody waits for us.

        If what was compared with is not what there is by then, it is compared again.
        """
        known: Verdicts = {}
        for _ in range(ATTEMPTS):
            try:
                return attempt(known)
            except NotCompared as error:
                known[error.comparison] = error.comparison.messages()
        raise _busy()

    def _catch_up_since(self, asked: int) -> None:
        """Read, unless somebody has begun to since then: what came of that holds for us as well.

        So those who wait for a cluster that does not answer wait side by side, not one after the other.
        """
        if self._done > asked:
            return
        if self._failed > asked and self._failure is not None:
            raise self._failure
        self._begun += 1
        began_s = time.monotonic()
        try:
            self._store.catch_up()
        except (ClientError, Problem) as error:
            self._failed, self._failure = self._begun, error
            raise
        self._done, self._read_at, self._failure = self._begun, began_s, None
        self._note()

    def _note(self) -> None:
        """What was deleted for good is not known any more."""
        known_by = self._store.state, self._store.state.permanent_deletions
        if self._known_by != known_by or len(self._known) > _KNOWN:
            self._known, self._known_by = {}, known_by


def _busy() -> Problem:
    why = "others write to the registry all the time: try again"
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, 50301, why)


async def registry_of(request: Request) -> Registry:
    registry = request.app.state.registry
    assert isinstance(registry, Registry)
    return registry


Asked = Annotated[Registry, Depends(registry_of)]
"""What a route asks for to get at the registry:  def subjects(registry: Asked) -> …"""
