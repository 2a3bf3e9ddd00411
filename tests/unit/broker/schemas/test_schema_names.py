"""Schemas by id, looked up in a registry that goes on changing."""

import asyncio
from collections.abc import Mapping

from headrace.broker.schemas.view import SchemaNames
from headrace.registry.formats import Reference, Schema, SchemaType
from headrace.registry.record_names import RecordNames
from headrace.registry.records import Record, SchemaKey, SchemaValue
from headrace.registry.schema_ids import SchemaRef
from headrace.registry.validation import RegisteredSchema
from unit.registry.registries import ARegistry, record_type


def one(name: str) -> RecordNames:
    return RecordNames({(): frozenset({name})})


def looked_up(
    names: SchemaNames, registry: ARegistry, *refs: SchemaRef
) -> Mapping[SchemaRef, RegisteredSchema]:
    return asyncio.run(names.look_up(registry.state, refs))


def test_a_schema_is_found_with_its_subjects_and_the_name_of_its_records() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))
    registry.register("orders-value", record_type("id"))
    found = looked_up(names, registry, made.id, 99)

    assert found[made.id].subjects == {"Order", "orders-value"}
    assert found[made.id].names == one("Order")
    assert found[99].subjects == frozenset()
    assert names.schemas == {made.id: found[made.id]}  # strangers' ids are not remembered


def test_a_schema_is_found_by_its_fingerprint_as_by_its_id() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))
    named = registry.state.fingerprint_of(made)
    found = looked_up(names, registry, made.id, named, bytes(16))

    assert found[named] == found[made.id]
    assert found[bytes(16)].subjects == frozenset()


def test_nothing_is_there_before_anything_was_read() -> None:
    found = asyncio.run(SchemaNames().look_up(None, [1]))

    assert found[1].subjects == frozenset()


def test_deleted_versions_do_not_count() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))
    registry.register("other", record_type("id"))
    registry.delete("Order")

    assert looked_up(names, registry, made.id)[made.id].subjects == {"other"}


def test_something_new_is_seen_after_forgetting() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))
    looked_up(names, registry, made.id)
    registry.register("other", record_type("id"))
    names.forget()

    assert names.schemas == {}
    assert looked_up(names, registry, made.id)[made.id].subjects == {"Order", "other"}


def test_an_id_that_is_anothers_after_all_went_for_good_has_the_others_name() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))
    looked_up(names, registry, made.id)
    registry.delete("Order")
    registry.delete("Order", permanent=True)
    again = SchemaValue("Cake", 1, made.id, Schema(SchemaType.AVRO, record_type("id", name="Cake")))
    registry.apply(Record(SchemaKey("Cake", 1), again))
    names.forget()

    assert looked_up(names, registry, made.id)[made.id].names == one("Cake")


def test_what_is_looked_up_while_something_new_comes_is_not_remembered() -> None:
    registry, names = ARegistry(), SchemaNames()
    made = registry.register("Order", record_type("id"))

    async def meanwhile() -> None:
        looking = asyncio.create_task(names.look_up(registry.state, [made.id]))
        await asyncio.sleep(0)
        names.forget()
        await looking

    asyncio.run(meanwhile())
    assert names.schemas == {}


def test_protobuf_is_read_with_all_that_it_refers_to() -> None:
    registry, names = ARegistry(), SchemaNames()
    texts = {
        "c": ('syntax = "proto3"; package p; message C {}', ()),
        "b": ('syntax = "proto3"; package p; import "c.proto"; message B { C c = 1; }', ("c",)),
        "a": ('syntax = "proto3"; package p; import "b.proto"; message A { B b = 1; }', ("b",)),
    }
    for number, (subject, (text, refers_to)) in enumerate(texts.items(), 1):
        references = tuple(Reference(f"{each}.proto", each, 1) for each in refers_to)
        schema = Schema(SchemaType.PROTOBUF, text, references)
        registry.apply(Record(SchemaKey(subject, 1), SchemaValue(subject, 1, number, schema)))

    assert looked_up(names, registry, 3)[3].names == RecordNames({(0,): frozenset({"p.A"})}, by_path=True)
    registry.apply(Record(SchemaKey("c", 1), None))
    assert "c" in looked_up(names, registry, 3)[3].names  # says what is missing, and is no name


def test_no_more_is_remembered_than_the_bounds_allow() -> None:
    registry, names = ARegistry(), SchemaNames(most=5)
    ids = [registry.register(f"s{each}", record_type("id", name=f"R{each}")).id for each in range(8)]
    for each in ids:
        assert looked_up(names, registry, each)[each].names == one(f"R{each - 1}")
        assert len(names.schemas) <= 5
    assert len(looked_up(names, registry, *ids)) == len(ids)
