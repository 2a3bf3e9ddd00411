"""Parsed schemas and the comparisons between them, cached: both may take seconds, outside of any lock."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from cachetools import LRUCache

from headrace.registry import names
from headrace.registry.formats import InvalidSchema, Level, Parsed, Reference, Resolve, Schema, check, parse
from headrace.registry.records import SchemaValue
from headrace.registry.refusals import Invalid, Refusal
from headrace.registry.state import LATEST, RegistryState, Show

MAX_CACHED: Final = 1000
MAX_VERDICTS: Final = 500  # more than requests can be decided at the same time


@dataclass(frozen=True)
class Comparison:
    """A new schema and the versions that it has to be compatible with; parsed schemas are not compared.

    A decision that needs a comparison returns it, because no other decision can be made meanwhile: the caller
    compares, adds the result to `Library.verdicts` and decides again. If other versions or another level have
    been set meanwhile, that decision needs another comparison.
    """

    new: Schema
    context: str
    olds: tuple[tuple[int, Schema], ...]
    level: Level
    permanent_deletions: int
    """The count of the state: after a permanent deletion a reference may mean another schema."""
    parsed: Parsed = field(compare=False, repr=False)
    parsed_olds: Sequence[Parsed] = field(compare=False, repr=False)

    def messages(self) -> list[str]:
        """Return the incompatibilities. This may take seconds."""
        versions = [version for version, _ in self.olds]
        return check(self.parsed, self.parsed_olds, self.level, versions=versions)


class Library:
    """Parses the schemas of a state, and those that are submitted to it."""

    def __init__(self, state: RegistryState, max_cached: int = MAX_CACHED) -> None:
        self._state = state
        self._parsed: LRUCache[tuple[str, Schema], Parsed] = LRUCache(max_cached)
        self._permanent_deletions = state.permanent_deletions
        self.verdicts: LRUCache[Comparison, list[str]] = LRUCache(MAX_VERDICTS)  # incompatibilities

    def parsed(self, subject: str, schema: Schema) -> Parsed:
        """Return a schema parsed, with references in the context of `subject`; Invalid if it is not valid."""
        found = self.cached(subject, schema)
        if found is None:
            found = parse_or_refuse(schema, lambda reference: self.resolved(subject, reference))
            self.cache(subject, schema, found)
        return found

    def cached(self, subject: str, schema: Schema) -> Parsed | None:
        if self._permanent_deletions != self._state.permanent_deletions:
            self._parsed.clear()  # a reference may mean another schema now
            self._permanent_deletions = self._state.permanent_deletions
        return self._parsed.get((names.context_of(subject), schema))

    def cache(self, subject: str, schema: Schema, parsed: Parsed) -> None:
        self._parsed[names.context_of(subject), schema] = parsed

    def parsed_version(self, value: SchemaValue) -> Parsed:
        """Return a registered version parsed; Invalid if another registry accepted what we cannot parse."""
        try:
            return self.parsed(value.subject, value.schema)
        except Invalid as error:
            raise Invalid(f"version {value.version} of {value.subject} cannot be parsed: {error}") from error

    def pinned(self, subject: str, schema: Schema) -> Schema:
        """Return the schema with references to the latest version replaced by that version's number."""
        references = []
        for reference in schema.references:
            live = self._state.versions(names.qualified(subject, reference.subject))
            is_pinned = reference.version != LATEST or not live
            references.append(reference if is_pinned else replace(reference, version=live[-1].version))
        return replace(schema, references=tuple(references))

    def check_live(self, parent: str, schema: Schema) -> None:
        """Raise Invalid if a new schema refers to a version that is deleted or does not exist."""
        for reference in schema.references:
            subject = names.qualified(parent, reference.subject)
            if reference.version not in {live.version for live in self._state.versions(subject)}:
                what = f"version {reference.version} of {subject}, which is deleted or does not exist"
                raise Invalid(f"the reference {reference.name} is to {what}")

    def resolved(self, parent: str, reference: Reference) -> Schema:
        """Return the schema that `parent` refers to, with full names in its own references."""
        subject = names.qualified(parent, reference.subject)
        try:
            found = self._state.version(subject, reference.version, Show.ALL).schema
        except Refusal as error:
            raise InvalidSchema(
                f"the reference {reference.name} is to version {reference.version} of {subject}: {error}"
            ) from error
        references = (
            replace(each, subject=names.qualified(subject, each.subject)) for each in found.references
        )
        return replace(found, references=tuple(references))


def parse_or_refuse(schema: Schema, resolve: Resolve) -> Parsed:
    """Return the schema parsed; Invalid if it is not valid. Any thread may call this."""
    if not schema.text.strip():
        raise Invalid("Empty schema")
    try:
        return parse(schema, resolve)
    except InvalidSchema as error:
        raise Invalid(f"Invalid schema of type {schema.type}, details: {error}") from error
