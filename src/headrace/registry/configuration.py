"""Decisions about compatibility settings and modes."""

from collections.abc import Mapping
from typing import Any

from headrace.registry import names, refusals
from headrace.registry.formats import Level
from headrace.registry.record_json import config_document, read_config
from headrace.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    Decision,
    Exists,
    Mode,
    ModeKey,
    ModeValue,
    Record,
    SchemaKey,
)
from headrace.registry.settings import DEFAULT_LEVEL
from headrace.registry.state import RegistryState, Show


def settings_scope(subject: str) -> str | None:
    """Return the subject or context that a setting of this name is for; None for the default context."""
    if not names.is_valid(subject, for_settings=True):
        raise refusals.InvalidSubject(subject)
    name = names.parse(subject)
    return None if name == (names.DEFAULT_CONTEXT, "") else str(name)


def set_config(
    state: RegistryState, subject: str | None, changes: Mapping[str, Any]
) -> Decision[ConfigValue]:
    """Return the new settings: `changes` over the current ones, without those that are None in `changes`."""
    state.settings.check_writable(subject)
    old = config_document(state.settings.config(subject) or ConfigValue())
    new = {name: value for name, value in {**old, **changes}.items() if value is not None}
    config = read_config(new)
    return Decision(config, [Record(ConfigKey(subject), config)])


def delete_config(state: RegistryState, subject: str | None) -> Decision[ConfigValue]:
    old = state.settings.config(subject)
    if old is None and subject is not None:
        raise refusals.NoSuchSubject(subject)
    state.settings.check_writable(subject)
    records = [] if old is None else [Record(ConfigKey(subject), None)]
    return Decision(old or ConfigValue(DEFAULT_LEVEL), records)


def set_mode(state: RegistryState, subject: str | None, mode: Mode, *, force: bool = False) -> Decision[Mode]:
    """Return the new mode. Without `force`, only subjects without schemas can be set to IMPORT."""
    records: list[Record] = []
    if mode is Mode.IMPORT and state.settings.mode_in_force(subject) is not Mode.IMPORT and not force:
        if state.subjects_of(subject):
            raise refusals.NotPermitted("Cannot import since found existing subjects")
        # Soft-deleted versions are deleted permanently: their ids may be imported anew.
        deleted = state.subjects_of(subject, Show.ALL)
        for context in sorted({names.context_of(name) for name in deleted}):
            records += state.max_id_records(context)
        for name in deleted:
            for value in state.versions(name, Show.ALL):
                key = SchemaKey(name, value.version)
                if state.referrers(key, Show.ALL):
                    raise refusals.Referenced(name, value.version)
                records.append(Record(key, None))
        records.append(Record(ClearSubjectKey(subject), Exists()))
    return Decision(mode, [*records, Record(ModeKey(subject), ModeValue(mode))])


def delete_mode(state: RegistryState, subject: str | None) -> Decision[Mode]:
    old = state.settings.mode(subject)
    if old is None and subject is not None:
        raise refusals.NoSuchSubject(subject)
    return Decision(old or Mode.READWRITE, [] if old is None else [Record(ModeKey(subject), None)])


def parse_level(name: str) -> Level:
    """Return the compatibility level of this name, in any case."""
    try:
        return Level(name.upper())
    except ValueError:
        raise refusals.InvalidLevel from None


def parse_mode(name: str) -> Mode:
    """Return the mode of this name, in any case."""
    try:
        return Mode(name.upper())
    except ValueError:
        raise refusals.InvalidMode from None
