"""Decisions about deletions: first soft, after which schemas can still be read by id, then permanent.

A version that others refer to cannot be deleted: live referrers prevent a soft deletion, and any referrer,
soft-deleted ones included, prevents a permanent one.
"""

from collections.abc import Iterable
from dataclasses import replace

from headrace.registry import names, refusals
from headrace.registry.records import (
    ContextKey,
    Decision,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Record,
    SchemaKey,
    SchemaValue,
)
from headrace.registry.state import RegistryState, Show


def delete_subject(state: RegistryState, subject: str, *, permanent: bool = False) -> Decision[list[int]]:
    """Return the numbers of the versions that are deleted."""
    everything = state.versions(subject, Show.ALL)
    live = state.versions(subject)
    if not everything:
        raise refusals.NoSuchSubject(subject)
    if not permanent and not live:
        raise refusals.SubjectDeleted(subject)
    state.settings.check_writable(subject)
    if permanent and live:
        raise refusals.SubjectNotDeleted(subject)
    deleted = everything if permanent else live
    for each in deleted:
        _check_referrers(state, each, permanent=permanent, except_for=subject)
    numbers = [each.version for each in deleted]
    if permanent:
        return Decision(numbers, _tombstones(state, subject, reversed(numbers)))
    return Decision(numbers, [Record(DeleteSubjectKey(subject), DeleteSubjectValue(numbers[-1]))])


def delete_version(
    state: RegistryState, subject: str, version: int, *, permanent: bool = False
) -> Decision[int]:
    """Return the number of the version that is deleted."""
    value = state.version(subject, version, Show.ALL)
    if value.deleted and not permanent:
        raise refusals.VersionDeleted(subject, value.version)
    state.settings.check_writable(subject)
    _check_referrers(state, value, permanent=permanent)
    if permanent and not value.deleted:
        raise refusals.VersionNotDeleted(subject, value.version)
    if permanent:
        return Decision(value.version, _tombstones(state, subject, [value.version]))
    return Decision(value.version, [Record(SchemaKey(subject, value.version), replace(value, deleted=True))])


def delete_context(state: RegistryState, context: str) -> Decision[None]:
    """Delete a context; ContextNotEmpty if it has subjects, soft-deleted ones included."""
    if state.subjects_of(f":{context}:", Show.ALL):
        raise refusals.ContextNotEmpty(context)
    known = context != names.DEFAULT_CONTEXT and state.has_context(context)
    return Decision(None, [Record(ContextKey(context), None)] if known else [])


def _tombstones(state: RegistryState, subject: str, versions: Iterable[int]) -> list[Record]:
    """Return tombstones for versions and, if these are all, for the settings of the subject."""
    records: list[Record] = [Record(SchemaKey(subject, version), None) for version in versions]
    if len(records) == len(state.versions(subject, Show.ALL)):
        records += [Record(key, None) for key in state.settings.keys_of(subject)]
    return [*state.max_id_records(names.context_of(subject)), *records]


def _check_referrers(
    state: RegistryState, value: SchemaValue, *, permanent: bool, except_for: str | None = None
) -> None:
    referrers = state.referrers(SchemaKey(value.subject, value.version), Show.ALL if permanent else Show.LIVE)
    if any(referrer.subject != except_for for referrer in referrers):
        raise refusals.Referenced(value.subject, value.version)
