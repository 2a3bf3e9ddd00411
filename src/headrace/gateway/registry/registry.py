"""The schema registry of a gateway, for any thread; calls run one at a time. And the threads for such calls.

    app.state.registry.by_id(7).schema.text
    app.state.registry.register("orders-value", SubmittedSchema(Schema(SchemaType.AVRO, '"string"'))).id

A call first reads the schemas topic to its end, so it knows what any gateway was acknowledged before. Schemas
by id are an exception: they never change, so known ones are cached for FRESH_S, and longer if no broker
answers. A permanent deletion by another gateway may take that long to be noticed.

A request of the registry waits for its lock, perhaps while a cluster does not answer. FastAPI runs every
plain `def` in one of forty threads; forty requests that wait for the registry would block all other routes.
So requests that wait for the registry have threads of their own.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Annotated, Final, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar
from fastapi import Depends, Request

from headrace.client.errors import ClientError, Unreachable
from headrace.gateway.current import clients_of
from headrace.gateway.problems import Problem, code_of
from headrace.gateway.reach import Reach
from headrace.gateway.registry.rights import SubjectRights
from headrace.gateway.registry.store import Store
from headrace.registry import names
from headrace.registry.formats import Parsed, Reference, Schema
from headrace.registry.library import Comparison, Library, parse_or_refuse
from headrace.registry.records import Decision, SchemaValue
from headrace.registry.refusals import Invalid, NoSuchSchema
from headrace.registry.registration import SubmittedSchema, register
from headrace.registry.state import RegistryState

FRESH_S: Final = 5.0
ATTEMPTS: Final = 100  # to write a decision while other gateways write, too
_CACHED: Final = 10_000
THREADS: Final = 40
_REFUSED: Final = {401, 403}

Answer = TypeVar("Answer")

_limiter: RunVar[CapacityLimiter] = RunVar("registry threads")  # one for each event loop


class SchemaRegistry:
    """The registry's state, read from the schemas topic, and the way to change it."""

    def __init__(self, reach: Reach) -> None:
        self._store = Store(reach)
        self._lock = Lock()
        self._started = 0  # number of the last read of the topic
        self._succeeded = 0  # number of the last read that succeeded
        self._failed = 0  # number of the last read that failed
        self._failure: Exception | None = None
        self._read_at_s = float("-inf")
        self._cache: dict[tuple[str, int | str, str], SchemaValue] = {}
        self._cache_state = self._store.reader.state, 0

    def understood(self, value: SchemaValue) -> Parsed:
        with self._lock:
            return self._store.reader.library.parsed_version(value)

    def register(self, subject: str, submitted: SubmittedSchema, *, normalize: bool = False) -> SchemaValue:
        """Return the schema's version of the subject, new or not; raise a Refusal if it is not allowed."""
        self.understand(names.normal(subject), submitted.schema)
        return self.change(
            lambda state, library: register(
                state, library, resolved(state, subject), submitted, normalize=normalize
            )
        )

    def latest(self, subject: str) -> SchemaValue:
        return self.read(lambda state: state.version(resolved(state, subject), -1))

    def by_id(self, schema_id: int, subject: str = "") -> SchemaValue:
        return self._cached(("by id", schema_id, subject), lambda state: state.by_id(schema_id, subject))

    def of_subject(self, schema_id: int, subject: str) -> SchemaValue:
        """Return the subject's version with this id; raise Invalid if the subject does not have it."""

        def find(state: RegistryState) -> SchemaValue:
            name = names.normal(state.settings.resolve_alias(subject))
            value = state.by_id(schema_id, name)
            if value.subject != name:
                raise Invalid(f"schema {schema_id} is not registered for subject {subject!r}")
            return value

        return self._cached(("of subject", schema_id, subject), find)

    def by_guid(self, guid: str) -> SchemaValue:
        """Return a version with this guid, which is the same in every registry."""
        return self._cached(("by guid", guid, ""), lambda state: state.by_guid(guid))

    def _cached(
        self, key: tuple[str, int | str, str], find: Callable[[RegistryState], SchemaValue]
    ) -> SchemaValue:
        cached = self._cache.get(key)
        if cached is not None and time.monotonic() - self._read_at_s < FRESH_S:
            return cached

        def find_and_cache(state: RegistryState) -> SchemaValue:
            self._cache[key] = value = find(state)
            return value

        try:
            return self.read(find_and_cache)
        except Unreachable:
            with self._lock, suppress(NoSuchSchema):
                return find_and_cache(self._store.reader.state)
            raise

    def understand(self, subject: str, schema: Schema) -> None:
        """Parse a schema before it is needed under the lock; raise Invalid if it is not valid.

        A client's schema may take long to parse, and other requests should not wait for it.
        """
        if schema.references:
            self.read(lambda _: None)  # so that the references are known
        with self._lock:
            state, library = self._store.reader.state, self._store.reader.library
            schema = library.pinned(subject, schema)
            deletions = state.permanent_deletions
            if library.cached(subject, schema) is not None:
                return

        def resolve(reference: Reference) -> Schema:
            with self._lock:
                return library.resolved(subject, reference)

        parsed = parse_or_refuse(schema, resolve)
        with self._lock:
            if state.permanent_deletions == deletions:
                library.cache(subject, schema, parsed)

    def read(self, question: Callable[[RegistryState], Answer]) -> Answer:
        """Return what `question` finds in the state that includes everything written before the call."""
        return self.change(lambda state, _: Decision(question(state)))

    def ask(self, question: Callable[[RegistryState, Library], Answer | Comparison]) -> Answer:
        """Like `read`, for a question that also needs parsed schemas."""

        def decide(state: RegistryState, library: Library) -> Decision[Answer] | Comparison:
            answer = question(state, library)
            return answer if isinstance(answer, Comparison) else Decision(answer)

        return self.change(decide)

    def recall(self, question: Callable[[RegistryState, Library], Answer]) -> Answer:
        """Return what `question` finds in the state as it was last read, without a request to a broker."""
        with self._lock:
            return question(self._store.reader.state, self._store.reader.library)

    def change(self, decide: Callable[[RegistryState, Library], Decision[Answer] | Comparison]) -> Answer:
        """Write what `decide` decides by the newest state, and return its answer.

        `decide` is called again after a comparison that it needs, which is made outside of the lock, and
        after a concurrent write of another gateway.
        """
        for _ in range(ATTEMPTS):
            called_at = self._started
            with self._lock:
                self._catch_up_since(called_at)
                library = self._store.reader.library
                decision = decide(self._store.reader.state, library)
                if isinstance(decision, Decision):
                    if not decision.records:
                        return decision.answer
                    with own_failures():
                        is_written = self._store.write(decision.records)
                    if is_written:
                        self._expire_cache()
                        return decision.answer
                    continue
            messages = decision.messages()
            with self._lock:
                library.verdicts[decision] = messages
        raise Problem(50301, f"other gateways wrote to the registry during {ATTEMPTS} attempts: try again")

    def _catch_up_since(self, called_at: int) -> None:
        """Read the topic, unless another thread has started to since the call: its result is as good.

        So threads that wait for a cluster that does not answer wait at the same time, not one after another.
        """
        if self._succeeded > called_at:
            return
        if self._failed > called_at and self._failure is not None:
            raise self._failure
        self._started += 1
        started_s = time.monotonic()
        try:
            with own_failures():
                self._store.catch_up()
        except (ClientError, Problem) as error:
            self._failed, self._failure = self._started, error
            raise
        self._succeeded, self._read_at_s, self._failure = self._started, started_s, None
        self._expire_cache()

    def _expire_cache(self) -> None:
        """Clear the cache after a permanent deletion, or if it is full."""
        state = self._store.reader.state, self._store.reader.state.permanent_deletions
        if self._cache_state != state or len(self._cache) > _CACHED:
            self._cache, self._cache_state = {}, state


@contextmanager
def own_failures() -> Iterator[None]:
    """Raise a Problem (502) if brokers refuse the gateway itself: the user can do nothing about it."""
    try:
        yield
    except ClientError as error:
        if code_of(error) // 100 in _REFUSED:
            raise Problem(50201, f"the gateway's own user is refused: {error}") from error
        raise


def resolved(state: RegistryState, subject: str) -> str:
    """Return the normalized name of a subject, with aliases resolved."""
    return state.settings.resolve_alias(names.normal(subject))


async def in_registry_thread(call: Callable[[], Answer]) -> Answer:
    """Return the result of `call` in one of the registry's threads, which each event loop has of its own."""
    limiter = _limiter.get(None)
    if limiter is None:
        limiter = CapacityLimiter(THREADS)
        _limiter.set(limiter)
    return await to_thread.run_sync(call, limiter=limiter)


async def registry_of(request: Request) -> SchemaRegistry:
    return clients_of(request).registry


async def rights_of(request: Request) -> SubjectRights:
    return clients_of(request).rights


RegistryDep = Annotated[SchemaRegistry, Depends(registry_of)]
"""The dependency of a route that needs the registry: def subjects(registry: RegistryDep) -> …"""
RightsDep = Annotated[SubjectRights, Depends(rights_of)]
"""The dependency of a route that shows only what the user may read."""
