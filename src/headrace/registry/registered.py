"""A schema that records name, looked up: where it is registered, and what its records are called."""

from collections.abc import Mapping

from headrace.registry.claims import Ref
from headrace.registry.formats import InvalidSchema, Reference, Schema
from headrace.registry.formats.limits import MAX_REFERENCES
from headrace.registry.library import Library
from headrace.registry.naming import RecordNames, record_names
from headrace.registry.records import SchemaValue
from headrace.registry.state import State


def live_places(state: State, ref: Ref) -> list[SchemaValue]:
    """The versions, of any subject, that are this schema; an id is one of the default context."""
    found = state.places(ref) if isinstance(ref, int) else state.alike(ref)
    return [each for each in found if not each.deleted]


def refs_of(state: State, subject: str) -> frozenset[Ref]:
    """The ids and fingerprints of a subject's schemas."""
    versions = state.versions(subject)
    return frozenset[Ref]((*(each.id for each in versions), *map(state.fingerprint_of, versions)))


def names_of(value: SchemaValue, referred_to: Mapping[Reference, Schema]) -> RecordNames | str:
    """What the records of a schema are called, or why nobody can tell. It takes a while for Protobuf."""

    def resolve(reference: Reference) -> Schema:
        if reference not in referred_to:
            raise InvalidSchema(f"the reference {reference.name} is to nothing")
        return referred_to[reference]

    try:
        return record_names(value.schema, resolve)
    except InvalidSchema as error:
        return str(error)


def referenced(state: State, value: SchemaValue) -> dict[Reference, Schema]:
    """All that the schema refers to: threads cannot ask the state, which changes."""
    library = Library(state)
    found: dict[Reference, Schema] = {}
    waiting = list(value.schema.references)
    while waiting and len(found) <= MAX_REFERENCES:
        reference = waiting.pop()
        if reference in found:
            continue
        try:
            found[reference] = library.resolved(value.subject, reference)
        except InvalidSchema:
            continue  # whoever needs it will say so
        waiting += found[reference].references
    return found
