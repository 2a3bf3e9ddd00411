"""Deciding about deletions: softly first, which can still be read by id, then for good.

What others refer to stays: a soft deletion asks the live ones, a permanent one all.
"""

from collections.abc import Iterable
from typing import Final

from headrace.registry import names
from headrace.registry.decision import Decision
from headrace.registry.records import (
    ContextKey,
    DeleteSubjectKey,
    DeleteSubjectValue,
    Mode,
    Record,
    SchemaKey,
    SchemaValue,
)
from headrace.registry.refusals import (
    ContextNotEmpty,
    NoSuchSubject,
    NotPermitted,
    Referenced,
    SubjectDeleted,
    SubjectNotDeleted,
    VersionDeleted,
    VersionNotDeleted,
)
from headrace.registry.state import Show, State, as_deleted

_READ_ONLY: Final = {Mode.READONLY, Mode.READONLY_OVERRIDE}


def delete_subject(state: State, subject: str, *, permanent: bool = False) -> Decision[list[int]]:
    """The versions that go."""
    everything = state.versions(subject, Show.ALL)
    live = state.versions(subject)
    if not everything:
        raise NoSuchSubject(subject)
    if not permanent and not live:
        raise SubjectDeleted(subject)
    _check_mode(state, subject)
    if permanent and live:
        raise SubjectNotDeleted(subject)
    going = everything if permanent else live
    for each in going:
        _check_referrers(state, each, permanent=permanent, but=subject)
    numbers = [each.version for each in going]
    if permanent:
        return Decision(numbers, _gone(state, subject, reversed(numbers)))
    return Decision(numbers, [Record(DeleteSubjectKey(subject), DeleteSubjectValue(numbers[-1]))])


def delete_version(state: State, subject: str, version: int, *, permanent: bool = False) -> Decision[int]:
    """The version that goes, by its number."""
    value = state.version(subject, version, Show.ALL)
    if value.deleted and not permanent:
        raise VersionDeleted(subject, value.version)
    _check_mode(state, subject)
    _check_referrers(state, value, permanent=permanent)
    if permanent and not value.deleted:
        raise VersionNotDeleted(subject, value.version)
    if permanent:
        return Decision(value.version, _gone(state, subject, [value.version]))
    return Decision(value.version, [Record(SchemaKey(subject, value.version), as_deleted(value))])


def delete_context(state: State, context: str) -> Decision[None]:
    """Forget a context without subjects; deleted ones count."""
    if state.subjects_of(f":{context}:", Show.ALL):
        raise ContextNotEmpty(context)
    known = context != names.DEFAULT_CONTEXT and state.has_context(context)
    return Decision(None, [Record(ContextKey(context), None)] if known else [])


def _gone(state: State, subject: str, versions: Iterable[int]) -> list[Record]:
    """Tombstones for versions, and for the subject's settings if nothing is left of it."""
    records: list[Record] = [Record(SchemaKey(subject, each), None) for each in versions]
    if len(records) == len(state.versions(subject, Show.ALL)):
        records += [Record(each, None) for each in state.settings.keys_of(subject)]
    return [*state.note_of_ids(names.context_of(subject)), *records]


def _check_mode(state: State, subject: str) -> None:
    if state.settings.mode_in_force(subject) in _READ_ONLY:
        raise NotPermitted(f"Subject {subject} is in read-only mode")


def _check_referrers(state: State, value: SchemaValue, *, permanent: bool, but: str | None = None) -> None:
    referrers = state.referrers(SchemaKey(value.subject, value.version), Show.ALL if permanent else Show.LIVE)
    if any(each.subject != but for each in referrers):
        raise Referenced(value.subject, value.version)
