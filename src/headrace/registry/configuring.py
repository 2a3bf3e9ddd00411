"""Deciding about settings: compatibility and what goes with it, and modes."""

from collections.abc import Mapping
from typing import Any, Final

from headrace.registry import names
from headrace.registry.decision import Decision
from headrace.registry.formats import Level
from headrace.registry.record_json import config_document, read_config
from headrace.registry.records import (
    ClearSubjectKey,
    ConfigKey,
    ConfigValue,
    Exists,
    Mode,
    ModeKey,
    ModeValue,
    Record,
    SchemaKey,
)
from headrace.registry.refusals import (
    InvalidLevel,
    InvalidMode,
    InvalidSubject,
    NoSuchSubject,
    NotPermitted,
    Referenced,
)
from headrace.registry.settings import DEFAULT_LEVEL
from headrace.registry.state import Show, State

_READ_ONLY: Final = {Mode.READONLY, Mode.READONLY_OVERRIDE}


def whose(subject: str) -> str | None:
    """Whom a setting of this name is for: None if it is the default context's."""
    if not names.is_valid(subject, for_settings=True):
        raise InvalidSubject(subject)
    name = names.parse(subject)
    return None if name == (names.DEFAULT_CONTEXT, "") else str(name)


def set_config(state: State, subject: str | None, changes: Mapping[str, Any]) -> Decision[ConfigValue]:
    """The settings as they become; what `changes` does not name stays, what it gives as None goes."""
    _check_writable(state, subject)
    old = config_document(state.settings.config(subject) or ConfigValue())
    new = {name: value for name, value in {**old, **changes}.items() if value is not None}
    config = read_config(new)
    return Decision(config, [Record(ConfigKey(subject), config)])


def delete_config(state: State, subject: str | None) -> Decision[ConfigValue]:
    """The settings as they were."""
    old = state.settings.config(subject)
    if old is None and subject is not None:
        raise NoSuchSubject(subject)
    _check_writable(state, subject)
    return Decision(
        old or ConfigValue(DEFAULT_LEVEL), [] if old is None else [Record(ConfigKey(subject), None)]
    )


def set_mode(state: State, subject: str | None, mode: Mode, *, force: bool = False) -> Decision[Mode]:
    """The mode. IMPORT is for subjects without schemas, whose ids could be in the way, or by `force`."""
    records = []
    if mode is Mode.IMPORT and state.settings.mode_in_force(subject) is not Mode.IMPORT and not force:
        records = _emptied(state, subject)
    return Decision(mode, [*records, Record(ModeKey(subject), ModeValue(mode))])


def delete_mode(state: State, subject: str | None) -> Decision[Mode]:
    """The mode as it was."""
    old = state.settings.mode(subject)
    if old is None and subject is not None:
        raise NoSuchSubject(subject)
    return Decision(old or Mode.READWRITE, [] if old is None else [Record(ModeKey(subject), None)])


def level(said: str) -> Level:
    """The level by its name, however it is written."""
    try:
        return Level(said.upper())
    except ValueError:
        raise InvalidLevel from None


def mode_named(said: str) -> Mode:
    """The mode by its name, however it is written."""
    try:
        return Mode(said.upper())
    except ValueError:
        raise InvalidMode from None


def _check_writable(state: State, subject: str | None) -> None:
    if state.settings.mode_in_force(subject) in _READ_ONLY:
        raise NotPermitted(
            f"{'The registry' if subject is None else f'Subject {subject}'} is in read-only mode"
        )


def _emptied(state: State, subject: str | None) -> list[Record]:
    """What is deleted of the subjects that are to be imported goes for good."""
    if state.subjects_of(subject):
        raise NotPermitted("Cannot import since found existing subjects")
    records = []
    for each in state.subjects_of(subject, Show.ALL):
        for value in state.versions(each, Show.ALL):
            key = SchemaKey(each, value.version)
            if state.referrers(key, Show.ALL):
                raise Referenced(each, value.version)
            records.append(Record(key, None))
    contexts = {names.context_of(each) for each in state.subjects_of(subject, Show.ALL)}
    notes = [note for each in sorted(contexts) for note in state.note_of_ids(each)]
    return [*notes, *records, Record(ClearSubjectKey(subject), Exists())]
