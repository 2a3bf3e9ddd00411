"""Decisions about a submitted schema: whether it is registered, whether it is compatible, its id and version.

A schema that equals another one of the context has the same id, in any subject. One that the subject has
already is not written again. Soft-deleted versions are not compared with, but keep their ids and numbers: the
next version is one more than the highest number ever used.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from headrace.registry import names, refusals
from headrace.registry.fingerprints import identity
from headrace.registry.formats import Level, Parsed, Schema
from headrace.registry.library import Comparison, Library
from headrace.registry.records import ContextKey, Decision, Exists, Mode, Record, SchemaKey, SchemaValue
from headrace.registry.state import RegistryState, Show

MAX_ID: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class SubmittedSchema:
    """A schema as a client sent it; id and version are for copies of another registry (mode IMPORT)."""

    schema: Schema
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    id: int | None = None
    version: int | None = None


def register(
    state: RegistryState,
    library: Library,
    subject: str,
    submitted: SubmittedSchema,
    *,
    normalize: bool = False,
) -> Decision[SchemaValue] | Comparison:
    """Return the version of the subject that the schema is, or becomes, or the comparison that is missing."""
    if not names.is_valid(subject):
        raise refusals.InvalidSubject(subject)
    state.settings.check_writable(subject)
    mode = state.settings.mode_in_force(subject)
    if submitted.id is not None and mode is not Mode.IMPORT:
        raise refusals.NotPermitted(f"Subject {subject} is not in import mode")
    if submitted.id is None and mode is not Mode.READWRITE:
        raise refusals.NotPermitted(f"Subject {subject} is not in read-write mode")
    live = state.versions(subject)
    importing = mode is Mode.IMPORT
    if live and not importing:
        submitted = _with_defaults(submitted, live[-1])
    value, parsed = _parsed(state, library, subject, submitted, normalize=normalize and not importing)
    if submitted.version is None:
        same = _find(library, value, [version for version in live if submitted.id in {None, version.id}])
        if same is not None:
            return Decision(same)
    if not importing:
        library.check_live(subject, value.schema)
        messages = _incompatibilities(state, library, value, parsed, live)
        if isinstance(messages, Comparison):
            return messages
        if messages:
            raise refusals.Incompatible(subject, messages)
    return _add(state, value, submitted, importing=importing)


def lookup(
    state: RegistryState,
    library: Library,
    subject: str,
    submitted: SubmittedSchema,
    *,
    normalize: bool = False,
    show: Show = Show.LIVE,
) -> SchemaValue:
    """Return the version of the subject that equals the schema; NoSuchSubject or NoSuchSchema if none."""
    versions = state.versions(subject, show)
    if not versions:
        raise refusals.NoSuchSubject(subject)
    value, _ = _parsed(state, library, subject, submitted, normalize=normalize)
    found = _find(library, value, versions)
    if found is not None:
        return found
    for version in reversed(versions):  # metadata and rules that the client left out match any
        defaults = _with_defaults(submitted, version)
        candidate = replace(value, metadata=defaults.metadata, rule_set=defaults.rule_set)
        if _is_equal(library, version, candidate):
            return version
    raise refusals.NoSuchSchema


def compatible(
    state: RegistryState,
    library: Library,
    subject: str,
    submitted: SubmittedSchema,
    olds: Sequence[SchemaValue],
    *,
    normalize: bool = False,
) -> list[str] | Comparison:
    """Return the incompatibilities of the schema with `olds`, by the settings of the subject.

    If the schemas have not been compared yet, return the comparison that is needed first.
    """
    value, parsed = _parsed(state, library, subject, submitted, normalize=normalize)
    library.check_live(subject, value.schema)
    return _incompatibilities(state, library, value, parsed, olds)


def _with_defaults(submitted: SubmittedSchema, version: SchemaValue) -> SubmittedSchema:
    """Return the schema with the metadata and rules of a version where it has none."""
    return replace(
        submitted,
        metadata=version.metadata if submitted.metadata is None else submitted.metadata,
        rule_set=version.rule_set if submitted.rule_set is None else submitted.rule_set,
    )


def _parsed(
    state: RegistryState, library: Library, subject: str, submitted: SubmittedSchema, *, normalize: bool
) -> tuple[SchemaValue, Parsed]:
    """Return the value that would be stored, without id and version, and the schema parsed.

    Invalid is raised if the schema is not valid, or cannot be encoded as JSON in UTF-8.
    """
    references = [(reference.name, reference.subject) for reference in submitted.schema.references]
    parts = submitted.schema.text, references, submitted.metadata, submitted.rule_set
    try:
        json.dumps(parts, allow_nan=False, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise refusals.Invalid(f"the schema cannot be stored: {error}") from error
    parsed = library.parsed(subject, library.pinned(subject, submitted.schema))
    normalize = normalize or state.settings.config_in_force(subject).normalize is True
    schema = Schema(parsed.type, parsed.normalized if normalize else parsed.canonical, parsed.references)
    return SchemaValue(subject, 0, 0, schema, submitted.metadata, submitted.rule_set), parsed


def _find(library: Library, value: SchemaValue, versions: Sequence[SchemaValue]) -> SchemaValue | None:
    """Return the newest version that equals `value`, preferring the same text to an equal canonical form."""
    for version in reversed(versions):
        if identity(version) == identity(value):
            return version
    return next((version for version in reversed(versions) if _is_equal(library, version, value)), None)


def _is_equal(library: Library, version: SchemaValue, value: SchemaValue) -> bool:
    """Return whether a version equals `value` in our canonical form; another registry may use another one."""
    if version.schema.type is not value.schema.type:
        return False
    if version.schema.text != value.schema.text:
        try:
            text = library.parsed_version(version).canonical
        except refusals.Invalid:
            return False
        version = replace(version, schema=replace(version.schema, text=text))
    return identity(version) == identity(value)


def _incompatibilities(
    state: RegistryState, library: Library, value: SchemaValue, parsed: Parsed, olds: Sequence[SchemaValue]
) -> list[str] | Comparison:
    config = state.settings.config_in_force(value.subject)
    assert config.compatibility is not None, value.subject
    if config.compatibility is Level.NONE:
        return []
    if config.group is not None:
        group = value.metadata_property(config.group)
        olds = [old for old in olds if old.metadata_property(config.group) == group]
    if not config.compatibility.transitive:
        olds = olds[-1:]  # the others need not be parsed
    if not olds:
        return []
    comparison = Comparison(
        new=value.schema,
        context=names.context_of(value.subject),
        olds=tuple((old.version, old.schema) for old in olds),
        level=config.compatibility,
        permanent_deletions=state.permanent_deletions,
        parsed=parsed,
        parsed_olds=[library.parsed_version(old) for old in olds],
    )
    return library.verdicts.get(comparison, comparison)


def _add(
    state: RegistryState, value: SchemaValue, submitted: SubmittedSchema, *, importing: bool
) -> Decision[SchemaValue]:
    """Choose version and id, and return the records that add the version."""
    subject, context = value.subject, names.context_of(value.subject)
    history = state.versions(subject, Show.ALL)
    following = history[-1].version + 1 if history else 1
    version = following if submitted.version is None else submitted.version
    if version != following and not importing:
        raise refusals.Invalid(
            f"Version is not one more than previous version: {version} after {following - 1}"
        )
    schema_id = state.id_of(value) if submitted.id is None else submitted.id
    if schema_id is None:
        schema_id = state.max_id(context) + 1
        if schema_id > MAX_ID:
            raise refusals.NotPermitted(f"all ids of the context {context} have been assigned")
    elif submitted.id is not None and any(
        identity(each) != identity(value) for each in state.versions_with_id(schema_id, context)
    ):
        raise refusals.NotPermitted(
            f"Overwrite new schema with id {schema_id} in context {context} is not permitted."
        )
    # Soft-deleted versions of the same schema without referrers are replaced by the new version.
    replaced = [
        SchemaKey(subject, old.version)
        for old in history
        if old.deleted
        and old.id == schema_id
        and old.version < version
        and not state.referrers(SchemaKey(subject, old.version), Show.ALL)
    ]
    added = replace(value, version=version, id=schema_id)
    context_record = [] if state.has_context(context) else [Record(ContextKey(context), Exists())]
    tombstones = [Record(key, None) for key in replaced]
    return Decision(added, [*context_record, *tombstones, Record(SchemaKey(subject, version), added)])
