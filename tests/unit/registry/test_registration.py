"""Which id and which version a schema gets, and when it gets none."""

import pytest

from headrace.registry.formats import Level, Reference
from headrace.registry.records import Mode
from headrace.registry.refusals import (
    Incompatible,
    Invalid,
    InvalidSubject,
    NoSuchSchema,
    NoSuchSubject,
    NotPermitted,
)
from headrace.registry.state import LATEST, Show
from unit.registry.registries import ARegistry, record_type

ONE, TWO, THREE = record_type("a"), record_type("a", "b?"), record_type("a", "b?", "c?")


def test_versions_count_in_a_subject_and_ids_in_the_registry() -> None:
    registry = ARegistry()
    made = [registry.register("s", ONE), registry.register("s", TWO), registry.register("t", THREE)]

    assert [(each.subject, each.version, each.id) for each in made] == [("s", 1, 1), ("s", 2, 2), ("t", 1, 3)]


def test_a_schema_that_is_there_is_not_written_again() -> None:
    registry = ARegistry()
    first = registry.register("s", ONE)
    written = len(registry.written)

    assert registry.register("s", ONE) == first
    assert registry.register("s", ONE.replace(":", " : ")) == first  # the same, in another writing
    assert len(registry.written) == written


def test_the_same_schema_has_the_same_id_in_every_subject() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register("s", TWO)

    assert registry.register("t", TWO).id == 2
    assert [each.subject for each in registry.state.versions_with_id(2)] == ["s", "t"]


def test_a_context_has_ids_of_its_own() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register("s", TWO)

    assert registry.register(":.billing:s", TWO).id == 1
    assert registry.state.contexts() == [".", ".billing"]
    assert registry.state.by_id(1).schema != registry.state.by_id(1, ":.billing:").schema


def test_an_id_is_found_in_the_context_that_has_the_subject() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register(":.billing:orders", TWO)

    assert registry.state.by_id(1, "orders").subject == ":.billing:orders"
    assert registry.state.by_id(1, "s").subject == "s"
    assert registry.state.by_id(1, "nobody").subject == "s"


def test_a_schema_that_may_not_follow_is_refused_and_changes_nothing() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    written = len(registry.written)

    with pytest.raises(Incompatible, match="READER_FIELD_MISSING_DEFAULT_VALUE") as refusal:
        registry.register("s", record_type("a", "b"))

    assert refusal.value.code == 409
    assert str(refusal.value).count("compatibility: 'BACKWARD'") == 1
    assert len(registry.written) == written


def test_only_the_newest_counts_unless_the_level_is_transitive() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register("s", TWO)
    without_default = record_type("a", "b")
    assert registry.incompatibilities("s", without_default) == []

    registry.configure(None, Level.BACKWARD_TRANSITIVE)
    assert registry.incompatibilities("s", without_default) != []


def test_what_is_deleted_does_not_count() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.delete("s", 1)

    assert registry.register("s", record_type("quite", "different")).version == 2


def test_a_subjects_own_level_is_stronger_than_that_for_all() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.configure(None, Level.FULL)
    registry.configure("s", Level.NONE)

    assert registry.register("s", record_type("z")).version == 2


def test_versions_of_another_group_do_not_count() -> None:
    registry = ARegistry()
    registry.configure("s", compatibilityGroup="application.major.version")
    registry.register("s", ONE, metadata={"properties": {"application.major.version": "1"}})
    different = record_type("quite", "different")

    with pytest.raises(Incompatible):
        registry.register("s", different, metadata={"properties": {"application.major.version": "1"}})
    made = registry.register("s", different, metadata={"properties": {"application.major.version": "2"}})
    assert made.version == 2


def test_a_deleted_schema_that_comes_back_has_its_id_and_a_new_version() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.delete("s")

    made = registry.register("s", ONE)

    assert (made.id, made.version) == (1, 2)
    assert [each.version for each in registry.state.versions("s", Show.ALL)] == [2]


def test_a_reference_is_to_a_version_that_is_there() -> None:
    registry = ARegistry()
    registry.register("common", record_type("x", name="Common"))
    text = '{"type":"record","name":"Order","fields":[{"name":"c","type":"Common"}]}'
    made = registry.register("s", text, refers_to=(Reference("Common", "common", 1),))

    assert registry.state.version("s", LATEST).schema.references == (Reference("Common", "common", 1),)
    assert made.id == 2
    with pytest.raises(Invalid, match="nowhere"):
        registry.register("t", text, refers_to=(Reference("Common", "nowhere", 1),))


def test_a_reference_to_the_newest_version_is_kept_as_its_number() -> None:
    registry = ARegistry()
    registry.register("common", record_type("x", name="Common"))
    registry.register("common", record_type("x", "y?", name="Common"))
    text = '{"type":"record","name":"Order","fields":[{"name":"c","type":"Common"}]}'

    made = registry.register("s", text, refers_to=(Reference("Common", "common", LATEST),))
    registry.register("common", record_type("x", "y?", "z?", name="Common"))

    assert made.schema.references == (Reference("Common", "common", 2),)
    assert registry.state.version("s", 1).schema.references == (Reference("Common", "common", 2),)
    with pytest.raises(Invalid, match="nowhere"):
        registry.register("t", text, refers_to=(Reference("Common", "nowhere", LATEST),))


def test_what_is_new_refers_to_nothing_that_is_deleted() -> None:
    registry = ARegistry()
    registry.register("common", record_type("x", name="Common"))
    registry.register("common", record_type("x", "y?", name="Common"))
    registry.delete("common", 1)
    text = '{"type":"record","name":"Order","fields":[{"name":"c","type":"Common"}]}'

    with pytest.raises(Invalid, match="version 1 of common, which is deleted"):
        registry.register("s", text, refers_to=(Reference("Common", "common", 1),))
    assert registry.register("s", text, refers_to=(Reference("Common", "common", 2),)).version == 1


def test_references_of_references_are_in_the_context_of_whoever_refers() -> None:
    registry = ARegistry()
    registry.register(":.a:inner", record_type("x", name="Inner"))
    middle = '{"type":"record","name":"Middle","fields":[{"name":"i","type":"Inner"}]}'
    registry.register(":.a:middle", middle, refers_to=(Reference("Inner", "inner", 1),))
    outer = '{"type":"record","name":"Outer","fields":[{"name":"m","type":"Middle"}]}'

    made = registry.register("outer", outer, refers_to=(Reference("Middle", ":.a:middle", 1),))
    assert made.version == 1


@pytest.mark.parametrize("text", ["", "  ", "{", '{"type":"record"}', '"no such type"'])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(Invalid):
        ARegistry().register("s", text)


def test_what_cannot_be_written_down_is_refused() -> None:
    for odd in ({"a": float("nan")}, {"a": "\ud800"}):
        with pytest.raises(Invalid, match="cannot be stored"):
            ARegistry().register("s", ONE, metadata=odd)


def test_an_odd_name_is_refused() -> None:
    with pytest.raises(InvalidSubject):
        ARegistry().register("a\nb", ONE)


def test_lookup_finds_what_is_there_and_says_what_is_not() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.register("s", TWO)

    assert registry.lookup("s", ONE).version == 1
    with pytest.raises(NoSuchSchema):
        registry.lookup("s", THREE)
    with pytest.raises(NoSuchSubject):
        registry.lookup("t", ONE)
    registry.delete("s", 1)
    with pytest.raises(NoSuchSchema):
        registry.lookup("s", ONE)
    assert registry.lookup("s", ONE, show=Show.ALL).version == 1


def test_what_another_registry_has_written_in_its_own_way_is_found() -> None:
    written = b'{"subject":"s","version":1,"id":5,"schema":"{ \\"type\\" : \\"string\\" }","deleted":false}'
    registry = ARegistry([(b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}', written)])

    assert registry.lookup("s", '"string"').id == 5
    assert registry.register("s", '"string"').version == 1


def test_normalized_schemas_are_one_where_it_is_asked_for_or_set() -> None:
    plain = '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"string"}}]}'
    spelled = '{"name":"R","type":"record","fields":[{"type":"string","name":"a"}]}'
    registry = ARegistry()
    first = registry.register("s", plain, normalize=True)

    assert registry.register("s", spelled, normalize=True) == first
    registry.configure("s", normalize=True)
    assert registry.register("s", spelled) == first


def test_metadata_and_rules_stay_until_others_are_given() -> None:
    registry = ARegistry()
    registry.register("s", ONE, metadata={"properties": {"owner": "us"}}, rule_set={"domainRules": []})

    assert registry.register("s", TWO).metadata == {"properties": {"owner": "us"}}
    assert registry.register("s", TWO, metadata={"properties": {"owner": "them"}}).version == 3
    assert registry.lookup("s", ONE).version == 1


# -- modes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [Mode.READONLY, Mode.READONLY_OVERRIDE])
def test_nothing_is_registered_while_it_is_read_only(mode: Mode) -> None:
    registry = ARegistry()
    registry.enter(None, mode)

    with pytest.raises(NotPermitted):
        registry.register("s", ONE)


def test_a_subject_may_be_written_although_others_may_not_but_not_if_that_is_overridden() -> None:
    registry = ARegistry()
    registry.enter("s", Mode.READWRITE)
    registry.enter(None, Mode.READONLY)
    assert registry.register("s", ONE).version == 1

    registry.enter(None, Mode.READONLY_OVERRIDE)
    with pytest.raises(NotPermitted):
        registry.register("s", TWO)


def test_an_import_brings_its_own_ids_and_versions() -> None:
    registry = ARegistry()
    registry.enter(None, Mode.IMPORT)
    made = registry.register("s", TWO, id=100, version=7)
    registry.register("s", record_type("anything"), id=50, version=3)
    assert (made.id, made.version) == (100, 7)

    registry.enter(None, Mode.READWRITE)
    following = registry.register("s", THREE)
    assert (following.id, following.version) == (101, 8)


def test_ids_are_given_in_an_import_and_only_there() -> None:
    registry = ARegistry()
    with pytest.raises(NotPermitted, match="not in import mode"):
        registry.register("s", ONE, id=5)
    registry.enter(None, Mode.IMPORT)
    with pytest.raises(NotPermitted, match="not in read-write mode"):
        registry.register("s", ONE)


def test_an_import_does_not_give_an_id_to_a_second_schema() -> None:
    registry = ARegistry()
    registry.enter(None, Mode.IMPORT)
    registry.register("s", ONE, id=5, version=1)

    with pytest.raises(NotPermitted, match="id 5"):
        registry.register("t", TWO, id=5, version=1)
    assert registry.register("t", ONE, id=5, version=9).version == 9


def test_a_version_that_is_asked_for_is_the_next_one() -> None:
    registry = ARegistry()
    with pytest.raises(Invalid, match="one more"):
        registry.register("s", ONE, version=2)
    assert registry.register("s", ONE, version=1).version == 1


def test_ids_come_to_an_end() -> None:
    registry = ARegistry()
    registry.enter(None, Mode.IMPORT)
    registry.register("s", ONE, id=2**31 - 1, version=1)
    registry.enter(None, Mode.READWRITE)

    with pytest.raises(NotPermitted, match="been assigned"):
        registry.register("s", TWO)


@pytest.mark.parametrize(
    "metadata", [None, {}, {"properties": [1]}, {"properties": "abc"}, {"properties": None}]
)
def test_metadata_that_are_no_map_have_no_properties(metadata: dict[str, object] | None) -> None:
    """Somebody may have written them to the topic, and they stay there."""
    registry = ARegistry()

    assert registry.register("s", ONE, metadata=metadata).metadata_property("a") is None
