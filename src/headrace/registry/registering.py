"""Deciding about a schema that somebody brings: is it there, may it follow, which id and version it gets.

A schema that says the same as another has its id, in whatever subject of the context. One that is there
already is not written again. What was deleted (softly) does not count for compatibility, but keeps its id
and its number: the next version is one more than any there was.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.registry import names
from headrace.registry.comparing import Comparison
from headrace.registry.decision import Decision
from headrace.registry.formats import Level, Parsed, Schema
from headrace.registry.identity import identity
from headrace.registry.library import Library
from headrace.registry.records import ContextKey, Exists, Mode, Record, SchemaKey, SchemaValue
from headrace.registry.refusals import (
    Incompatible,
    Invalid,
    InvalidSubject,
    NoSuchSchema,
    NoSuchSubject,
    NotPermitted,
)
from headrace.registry.state import Show, State

MAX_ID: Final = 2**31 - 1
_READ_ONLY: Final = {Mode.READONLY, Mode.READONLY_OVERRIDE}
_TRANSITIVE: Final = {Level.BACKWARD_TRANSITIVE, Level.FORWARD_TRANSITIVE, Level.FULL_TRANSITIVE}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A schema as it was brought; id and version are for whoever copies another registry (mode IMPORT)."""

    schema: Schema
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    id: int | None = None
    version: int | None = None


def register(
    state: State, library: Library, subject: str, wanted: Wanted, *, normalize: bool = False
) -> Decision[SchemaValue]:
    """The version that the schema is, or becomes."""
    if not names.is_valid(subject):
        raise InvalidSubject(subject)
    _check_mode(state, subject, wanted)
    _check_text(wanted)
    importing = state.settings.mode_in_force(subject) is Mode.IMPORT
    wanted = replace(wanted, schema=library.pinned(subject, wanted.schema))
    if not importing:
        wanted = _with_what_was_said_before(state, subject, wanted)
    parsed = library.parsed(subject, wanted.schema)
    value = _value(state, subject, wanted, parsed, normalize=normalize and not importing)
    if wanted.version is None:
        found = _there(state, library, value, wanted.id, Show.LIVE)
        if found is not None:
            return Decision(found)
    if not importing:
        library.check_live(subject, wanted.schema)
        messages = _incompatibilities(state, library, value, parsed, state.versions(subject))
        if messages:
            raise Incompatible(subject, messages)
    return _added(state, value, wanted, importing=importing)


def lookup(
    state: State,
    library: Library,
    subject: str,
    wanted: Wanted,
    *,
    normalize: bool = False,
    show: Show = Show.LIVE,
) -> SchemaValue:
    """The version of the subject that says the same; NoSuchSubject or NoSuchSchema if there is none."""
    if not state.versions(subject, show):
        raise NoSuchSubject(subject)
    _check_text(wanted)
    wanted = replace(wanted, schema=library.pinned(subject, wanted.schema))
    parsed = library.parsed(subject, wanted.schema)
    value = _value(state, subject, wanted, parsed, normalize=normalize)
    found = _there(state, library, value, None, show)
    if found is not None:
        return found
    for version in reversed(state.versions(subject, show)):  # what was not said may be anything
        metadata = version.metadata if wanted.metadata is None else wanted.metadata
        rule_set = version.rule_set if wanted.rule_set is None else wanted.rule_set
        if _says(library, version, replace(value, metadata=metadata, rule_set=rule_set)):
            return version
    raise NoSuchSchema


def compatible(
    state: State,
    library: Library,
    subject: str,
    wanted: Wanted,
    olds: Sequence[SchemaValue],
    *,
    normalize: bool = False,
) -> list[str]:
    """What keeps the schema from following `olds`, by what is set for the subject."""
    _check_text(wanted)
    wanted = replace(wanted, schema=library.pinned(subject, wanted.schema))
    parsed = library.parsed(subject, wanted.schema)
    library.check_live(subject, wanted.schema)
    value = _value(state, subject, wanted, parsed, normalize=normalize)
    return _incompatibilities(state, library, value, parsed, olds)


def _check_mode(state: State, subject: str, wanted: Wanted) -> None:
    mode = state.settings.mode_in_force(subject)
    if mode in _READ_ONLY:
        raise NotPermitted(f"Subject {subject} is in read-only mode")
    if wanted.id is not None and mode is not Mode.IMPORT:
        raise NotPermitted(f"Subject {subject} is not in import mode")
    if wanted.id is None and mode is not Mode.READWRITE:
        raise NotPermitted(f"Subject {subject} is not in read-write mode")


def _check_text(wanted: Wanted) -> None:
    """What cannot be written as JSON in UTF-8 cannot be kept."""
    references = [(each.name, each.subject) for each in wanted.schema.references]
    said = wanted.schema.text, references, wanted.metadata, wanted.rule_set
    try:
        json.dumps(said, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Invalid(f"the schema cannot be kept: {error}") from error


def _with_what_was_said_before(state: State, subject: str, wanted: Wanted) -> Wanted:
    """Metadata and rules stay as they were if nobody says anything about them."""
    live = state.versions(subject)
    if not live:
        return wanted
    metadata = live[-1].metadata if wanted.metadata is None else wanted.metadata
    rule_set = live[-1].rule_set if wanted.rule_set is None else wanted.rule_set
    return replace(wanted, metadata=metadata, rule_set=rule_set)


def _value(state: State, subject: str, wanted: Wanted, parsed: Parsed, *, normalize: bool) -> SchemaValue:
    """What would be kept, but for the numbers."""
    normalize = normalize or state.settings.config_in_force(subject).normalize is True
    text = parsed.normalized if normalize else parsed.canonical
    schema = Schema(parsed.type, text, tuple(parsed.references))
    return SchemaValue(subject, 0, 0, schema, wanted.metadata, wanted.rule_set)


def _there(
    state: State, library: Library, value: SchemaValue, wanted_id: int | None, show: Show
) -> SchemaValue | None:
    """The newest version of the subject that says the same, be it in another registry's writing."""
    versions = [
        each for each in reversed(state.versions(value.subject, show)) if wanted_id in {None, each.id}
    ]
    for each in versions:
        if identity(each) == identity(value):
            return each
    return next((each for each in versions if _says(library, each, value)), None)


def _says(library: Library, version: SchemaValue, value: SchemaValue) -> bool:
    """Whether a version says the same, if another registry's writing of it is put into ours."""
    if version.schema.type is not value.schema.type:
        return False
    if version.schema.text != value.schema.text:
        try:
            text = library.kept(version).canonical
        except Invalid:
            return False
        version = replace(version, schema=replace(version.schema, text=text))
    return identity(version) == identity(value)


def _incompatibilities(
    state: State, library: Library, value: SchemaValue, parsed: Parsed, olds: Sequence[SchemaValue]
) -> list[str]:
    config = state.settings.config_in_force(value.subject)
    assert config.compatibility is not None, value.subject
    if config.compatibility is Level.NONE:
        return []
    if config.group is not None:
        group = value.metadata_property(config.group)
        olds = [each for each in olds if each.metadata_property(config.group) == group]
    if config.compatibility not in _TRANSITIVE:
        olds = olds[-1:]  # so that the others need not be understood
    comparison = Comparison(
        new=value.schema,
        context=names.context_of(value.subject),
        olds=tuple((each.version, each.schema) for each in olds),
        level=config.compatibility,
        forgotten=state.forgotten,
        parsed=parsed,
        parsed_olds=[library.kept(each) for each in olds],
    )
    return library.comparing.messages(comparison)


def _added(state: State, value: SchemaValue, wanted: Wanted, *, importing: bool) -> Decision[SchemaValue]:
    subject = value.subject
    history = state.versions(subject, Show.ALL)
    following = history[-1].version + 1 if history else 1
    if wanted.version not in {None, following} and not importing:
        raise Invalid(
            f"Version is not one more than previous version: {wanted.version} after {following - 1}"
        )
    version = following if wanted.version is None else wanted.version
    made = replace(value, version=version, id=_id(state, value, wanted.id))
    records = [Record(SchemaKey(subject, each), None) for each in _replaced(state, made, history)]
    records.append(Record(SchemaKey(subject, version), made))
    context = names.context_of(subject)
    if not state.has_context(context):
        records.insert(0, Record(ContextKey(context), Exists()))
    return Decision(made, records)


def _id(state: State, value: SchemaValue, wanted: int | None) -> int:
    context = names.context_of(value.subject)
    known = state.id_of(value)
    if wanted is None:
        if known is None and state.max_id(context) >= MAX_ID:
            raise NotPermitted(f"all ids of the context {context} have been given out")
        return state.max_id(context) + 1 if known is None else known
    if any(identity(each) != identity(value) for each in state.places(wanted, context)):
        raise NotPermitted(f"Overwrite new schema with id {wanted} in context {context} is not permitted.")
    return wanted


def _replaced(state: State, made: SchemaValue, history: Sequence[SchemaValue]) -> list[int]:
    """Deleted versions that say the same: the new one takes their place, unless somebody refers to them."""
    return [
        each.version
        for each in history
        if each.deleted
        and each.id == made.id
        and each.version < made.version
        and not state.referrers(SchemaKey(each.subject, each.version), Show.ALL)
    ]
