"""What goes, what stays, and what is remembered of it."""

import pytest

from headrace.registry.formats import Level, Reference
from headrace.registry.records import Mode
from headrace.registry.refusals import (
    NoSuchSchema,
    NoSuchSubject,
    NoSuchVersion,
    NotPermitted,
    Referenced,
    SubjectDeleted,
    SubjectNotDeleted,
    VersionDeleted,
    VersionNotDeleted,
)
from headrace.registry.state import LATEST, Show
from unit.registry.registries import ARegistry, record_type

ONE, TWO, THREE = record_type("a"), record_type("a", "b?"), record_type("a", "b?", "c?")
REFERRING = '{"type":"record","name":"R","fields":[{"name":"o","type":"Order"}]}'


@pytest.fixture
def registry() -> ARegistry:
    made = ARegistry()
    for text in (ONE, TWO, THREE):
        made.register("s", text)
    return made


def test_a_deleted_subject_is_not_listed_and_its_schemas_are_still_known_by_id(registry: ARegistry) -> None:
    assert registry.delete("s") == [1, 2, 3]

    assert registry.state.subjects() == []
    assert registry.state.subjects(show=Show.ALL) == ["s"]
    assert registry.state.subjects(show=Show.DELETED) == ["s"]
    assert registry.state.by_id(2).version == 2
    with pytest.raises(NoSuchSubject):
        registry.state.version("s", LATEST)
    assert registry.state.version("s", 1, Show.ALL).deleted


def test_what_is_deleted_for_good_is_gone(registry: ARegistry) -> None:
    registry.configure("s", Level.FULL)
    registry.enter("s", Mode.READWRITE)
    registry.delete("s")
    assert registry.delete("s", permanent=True) == [1, 2, 3]

    with pytest.raises(NoSuchSchema):
        registry.state.by_id(2)
    assert registry.state.subjects(show=Show.ALL) == []
    assert registry.state.settings.config("s") is None
    assert registry.state.settings.mode("s") is None


def test_an_id_that_is_gone_is_not_given_out_again_not_even_after_compaction(registry: ARegistry) -> None:
    registry.delete("s")
    registry.delete("s", permanent=True)

    for later in (registry, registry.replayed(), registry.compacted()):
        assert later.register("t", record_type("new")).id == 4


def test_versions_begin_at_one_again_when_nothing_is_left(registry: ARegistry) -> None:
    registry.delete("s")
    assert registry.register("s", record_type("new")).version == 4
    registry.delete("s")
    registry.delete("s", permanent=True)

    assert registry.register("s", record_type("new")).version == 1


def test_deleting_for_good_is_the_second_step(registry: ARegistry) -> None:
    with pytest.raises(SubjectNotDeleted):
        registry.delete("s", permanent=True)
    with pytest.raises(VersionNotDeleted):
        registry.delete("s", 2, permanent=True)
    registry.delete("s", 2)
    with pytest.raises(SubjectNotDeleted):
        registry.delete("s", permanent=True)
    with pytest.raises(VersionDeleted):
        registry.delete("s", 2)
    assert registry.delete("s", 2, permanent=True) == 2
    with pytest.raises(NoSuchVersion):
        registry.delete("s", 2)


def test_a_subject_is_deleted_once(registry: ARegistry) -> None:
    registry.delete("s")

    with pytest.raises(SubjectDeleted):
        registry.delete("s")
    with pytest.raises(NoSuchSubject):
        registry.delete("t")


def test_the_latest_is_the_newest_that_is_not_deleted(registry: ARegistry) -> None:
    assert registry.delete("s", LATEST) == 3
    assert registry.state.version("s", LATEST).version == 2


def test_what_others_refer_to_stays(registry: ARegistry) -> None:
    registry.register("r", REFERRING, refers_to=(Reference("Order", "s", 2),))

    with pytest.raises(Referenced):
        registry.delete("s", 2)
    with pytest.raises(Referenced):
        registry.delete("s")
    assert registry.delete("s", 1) == 1

    registry.delete("r")
    registry.delete("s")
    with pytest.raises(Referenced):
        registry.delete("s", permanent=True)
    registry.delete("r", permanent=True)
    assert registry.delete("s", permanent=True) == [1, 2, 3]


def test_a_deleted_version_that_others_refer_to_stays_when_its_schema_comes_back(registry: ARegistry) -> None:
    registry.register("r", REFERRING, refers_to=(Reference("Order", "s", 1),))
    registry.delete("r")
    registry.delete("s", 1)
    registry.configure("s", Level.NONE)
    registry.register("s", ONE)

    assert [each.version for each in registry.state.versions("s", Show.ALL)] == [1, 2, 3, 4]


def test_nothing_is_deleted_while_it_is_read_only(registry: ARegistry) -> None:
    registry.enter("s", Mode.READONLY)

    with pytest.raises(NotPermitted):
        registry.delete("s")
    with pytest.raises(NotPermitted):
        registry.delete("s", 1)
