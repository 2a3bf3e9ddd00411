"""What is set for whom, and what holds."""

import pytest

from headrace.registry.configuration import parse_level, parse_mode, settings_scope
from headrace.registry.deletion import delete_context
from headrace.registry.formats import Level
from headrace.registry.records import ConfigValue, Mode
from headrace.registry.refusals import (
    ContextNotEmpty,
    InvalidLevel,
    InvalidMode,
    InvalidSubject,
    NoSuchSubject,
    NotPermitted,
)
from headrace.registry.state import Show
from unit.registry.registries import ARegistry, record_type

ONE, TWO = record_type("a"), record_type("a", "b?")


def test_what_is_nearest_holds() -> None:
    registry = ARegistry()
    settings = registry.state.settings
    assert settings.config_in_force("s").compatibility is Level.BACKWARD
    registry.configure(":.__GLOBAL:", Level.FORWARD)
    assert settings.config_in_force(":.a:s").compatibility is Level.FORWARD
    registry.configure(None, Level.FULL)
    assert settings.config_in_force("s").compatibility is Level.FULL
    assert settings.config_in_force(":.a:s").compatibility is Level.FORWARD
    registry.configure(":.a:", Level.NONE)
    assert settings.config_in_force(":.a:s").compatibility is Level.NONE
    registry.configure(":.a:s", Level.FULL_TRANSITIVE)
    assert settings.config_in_force(":.a:s").compatibility is Level.FULL_TRANSITIVE


def test_a_subject_that_sets_something_else_has_the_level_of_all() -> None:
    registry = ARegistry()
    registry.configure(None, Level.NONE)
    registry.configure("s", normalize=True)

    assert registry.state.settings.config_in_force("s") == ConfigValue(Level.NONE, normalize=True)


def test_what_is_not_named_stays_as_it_is() -> None:
    registry = ARegistry()
    registry.configure("s", Level.NONE, alias="t")
    registry.configure("s", normalize=True)
    assert registry.state.settings.config("s") == ConfigValue(Level.NONE, normalize=True, alias="t")

    registry.configure("s", alias=None)
    assert registry.state.settings.config("s") == ConfigValue(Level.NONE, normalize=True)


def test_an_alias_stands_for_another_subject() -> None:
    registry = ARegistry()
    registry.configure(":.a:short", alias="long")

    assert registry.state.settings.resolve_alias(":.a:short") == ":.a:long"
    assert registry.state.settings.resolve_alias("other") == "other"


def test_deleting_what_is_not_set_is_refused_but_for_all() -> None:
    registry = ARegistry()
    with pytest.raises(NoSuchSubject):
        registry.unconfigure("s")
    with pytest.raises(NoSuchSubject):
        registry.leave("s")
    registry.unconfigure(None)
    registry.leave(None)
    assert registry.written == []


def test_settings_of_what_is_read_only_stay() -> None:
    registry = ARegistry()
    registry.configure("s", Level.NONE)
    registry.enter(None, Mode.READONLY)

    with pytest.raises(NotPermitted):
        registry.configure("s", Level.FULL)
    with pytest.raises(NotPermitted):
        registry.unconfigure("s")


def test_an_import_wants_subjects_without_schemas() -> None:
    registry = ARegistry()
    registry.register("s", ONE)

    with pytest.raises(NotPermitted, match="existing subjects"):
        registry.enter(None, Mode.IMPORT)
    registry.enter("t", Mode.IMPORT)
    registry.enter(":.a:", Mode.IMPORT)
    registry.enter(None, Mode.IMPORT, force=True)
    assert registry.state.subjects() == ["s"]


def test_what_is_deleted_is_gone_when_an_import_begins() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register(":.a:s", TWO)
    registry.delete("s")
    registry.delete(":.a:s")
    registry.enter(":.a:", Mode.IMPORT)
    assert registry.state.subjects(show=Show.ALL) == ["s"]

    registry.enter(":.__GLOBAL:", Mode.IMPORT)
    assert registry.state.subjects(show=Show.ALL) == []


def test_a_context_is_forgotten_when_it_has_no_subjects() -> None:
    registry = ARegistry()
    registry.register(":.a:s", ONE)
    with pytest.raises(ContextNotEmpty):
        delete_context(registry.state, ".a")
    registry.delete(":.a:s")
    registry.delete(":.a:s", permanent=True)
    registry.carry_out(delete_context(registry.state, ".a"))

    assert registry.state.contexts() == ["."]


def test_names_of_levels_and_modes_are_read_however_they_are_written() -> None:
    assert parse_level("full_transitive") is Level.FULL_TRANSITIVE
    assert parse_mode("ReadOnly") is Mode.READONLY
    with pytest.raises(InvalidLevel):
        parse_level("some")
    with pytest.raises(InvalidMode):
        parse_mode("some")


def test_the_default_context_is_for_all() -> None:
    assert settings_scope(":.:") is None
    assert settings_scope(":.a:") == ":.a:"
    assert settings_scope("s") == "s"
    with pytest.raises(InvalidSubject):
        settings_scope("\n")
