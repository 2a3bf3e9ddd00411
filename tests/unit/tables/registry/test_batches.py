"""Batches of records by their schemas' ids: what is asked for, how often, and what becomes of a row."""

import json
from collections import Counter
from typing import Any

import pytest

from headrace.client.errors import Unreachable
from headrace.client.schemas.registry import RegistryError
from headrace.registry.schema_ids import SchemaRef, format_ref
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry import batches
from headrace.tables.registry.batches import Batches, reader_of
from headrace.tables.registry.client import Clock, UnknownSchema, retry_while_unreachable
from headrace.tables.registry.reader import ResolvedSchema
from unit.tables.registry.given import whole

OLD = whole("JSON", {"type": "object", "properties": {"id": {"type": "integer"}}})
NEW = whole("JSON", {"type": "object", "properties": {"id": {"type": "integer"}, "item": {"type": "string"}}})


class Shelf:
    """A registry without a network, and a clock that only moves when somebody waits."""

    def __init__(self, **schemas: ResolvedSchema) -> None:
        self.schemas: dict[SchemaRef, ResolvedSchema] = {
            int(name.removeprefix("n")): schema for name, schema in schemas.items()
        }
        self.asked: Counter[SchemaRef] = Counter()
        self.now = 0.0

    def ask(self, ref: SchemaRef) -> ResolvedSchema:
        self.asked[ref] += 1
        if ref not in self.schemas:
            raise UnknownSchema(ref)
        return self.schemas[ref]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.now, self.sleep)

    def batches(self) -> Batches:
        return Batches(reader_of(NEW), self.ask, self.clock)


def record(schema_id: int, **fields: Any) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + json.dumps(fields).encode()


def outcomes(decoding: Batches, *values: bytes | None) -> list[tuple[Any, str | None]]:
    return [(each["row"], each["reason"]) for each in decoding.decode(values).to_pylist()]


def test_records_of_several_schemas_are_rows_of_one() -> None:
    shelf = Shelf(n1=OLD, n2=NEW)
    found = outcomes(shelf.batches(), record(2, id=1, item="tea"), None, record(1, id=2), record(2, id=3))
    assert found == [
        ({"id": 1, "item": "tea"}, None),
        (None, None),
        ({"id": 2, "item": None}, None),
        ({"id": 3, "item": None}, None),
    ]


def test_a_schema_may_be_named_by_its_fingerprint() -> None:
    shelf, named = Shelf(n1=OLD), bytes(range(16))
    shelf.schemas[named] = NEW
    decoding = shelf.batches()
    for _ in range(2):
        found = outcomes(decoding, b"\1" + named + b'{"id": 1, "item": "tea"}', record(1, id=2))
        assert found == [({"id": 1, "item": "tea"}, None), ({"id": 2, "item": None}, None)]
    assert shelf.asked == {1: 1, named: 1}


def test_a_schema_is_asked_for_once() -> None:
    shelf = Shelf(n1=OLD)
    decoding = shelf.batches()
    for number in range(3):
        outcomes(decoding, record(1, id=number), record(1, id=number))
    assert shelf.asked == {1: 1}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (b"", "it has no schema id: it is empty, expected 00 and an id of 4 bytes"),
        (b'{"id": 1}', "it has no schema id: it begins with 0x7b, expected 00 and an id of 4 bytes"),
        (b"\0\0\0", "it has no schema id: it ends after 3 of 5 bytes, expected 00 and an id of 4 bytes"),
        (
            b"\1" + bytes(15),
            "it has no schema id: it ends after 16 of 17 bytes, expected 00 and an id of 4 bytes",
        ),
        (b"\1" + bytes(16), "its schema 00000000-0000-0000-0000-000000000000 is not in the registry"),
        (record(9, id=1), "its schema 9 is not in the registry"),
        (record(1, id="x"), 'it does not fit its schema at id: "x" is not of type "integer"'),
        (record(1, id=1 << 70), "it does not fit the columns: "),
        (record(3, id=1), "its schema is AVRO, and the schema of the columns is JSON (schema 3)"),
        (record(4, id=1), "its schema cannot be parsed: "),
    ],
)
def test_a_row_that_cannot_be_decoded_says_why_and_its_neighbours_are_well(value: bytes, said: str) -> None:
    shelf = Shelf(n1=OLD, n3=whole("AVRO", '"int"'), n4=whole("JSON", '{"type": 5}'))
    before, bad, after = outcomes(shelf.batches(), record(1, id=1), value, record(1, id=2))
    assert before == ({"id": 1, "item": None}, None)
    assert after == ({"id": 2, "item": None}, None)
    assert bad[0] is None
    assert bad[1] is not None
    assert bad[1].startswith(said)


def test_an_id_that_the_registry_learns_of_a_moment_late_is_not_unknown() -> None:
    shelf = Shelf()

    def late(ref: SchemaRef) -> ResolvedSchema:
        if shelf.now > 0:
            shelf.schemas[7] = OLD
        return shelf.ask(ref)

    decoding = Batches(reader_of(NEW), late, shelf.clock)
    assert outcomes(decoding, record(7, id=1)) == [({"id": 1, "item": None}, None)]


def test_an_unknown_id_is_asked_for_again_after_a_minute_and_not_before() -> None:
    shelf = Shelf()
    decoding = shelf.batches()
    outcomes(decoding, record(7, id=1))
    outcomes(decoding, record(7, id=1))
    assert shelf.asked == {7: 2}
    shelf.schemas[7] = OLD
    shelf.now += 61
    assert outcomes(decoding, record(7, id=1)) == [({"id": 1, "item": None}, None)]


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_WRITERS", 2)
    shelf = Shelf(n1=OLD, n2=NEW, n3=OLD)
    decoding = shelf.batches()
    for schema_id in (1, 2, 1, 3, 1, 2):
        assert outcomes(decoding, record(schema_id, id=1))[0][1] is None
    assert shelf.asked == {1: 1, 2: 2, 3: 1}


def test_a_registry_that_is_away_is_waited_for() -> None:
    shelf = Shelf()

    def ask() -> str:
        if shelf.now < 20:
            raise Unreachable("no registry answers at http://127.0.0.1:1")
        return "found"

    assert retry_while_unreachable("schema 7", ask, 60, shelf.clock) == "found"
    assert 20 <= shelf.now < 30


def test_patience_has_an_end_and_nothing_is_decided_about_a_row() -> None:
    shelf = Shelf()

    def away(ref: SchemaRef) -> ResolvedSchema:
        def ask() -> ResolvedSchema:
            raise Unreachable("no registry answers at http://127.0.0.1:1")

        return retry_while_unreachable(f"schema {format_ref(ref)}", ask, 60, shelf.clock)

    decoding = Batches(reader_of(NEW), away, shelf.clock)
    with pytest.raises(ReadError, match="schema 7 cannot be fetched: no registry answers"):
        outcomes(decoding, record(7, id=1))
    assert 50 < shelf.now <= 60


def test_a_password_that_is_wrong_is_not_tried_again() -> None:
    shelf = Shelf()

    def ask() -> ResolvedSchema:
        raise RegistryError("unauthorized", 40101)

    with pytest.raises(ReadError, match="schema 7 cannot be fetched: unauthorized"):
        retry_while_unreachable("schema 7", ask, 60, shelf.clock)
    assert shelf.now == 0
