"""References, whatever the format, and how much of a schema we look at."""

import json
from collections import Counter

import pytest

from headrace.registry.formats import InvalidSchema, Reference, Schema, SchemaType, parse
from headrace.registry.formats.limits import MAX_DEPTH, MAX_REFERENCES, MAX_TEXT_BYTES
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from unit.registry.formats.given import avro, json_schema, kinds, no_references


def record(name: str, *used: str) -> Schema:
    """A schema that refers to others, which are subjects of the same name."""
    fields = [{"name": f"f_{other}", "type": other} for other in used]
    text = json.dumps({"type": "record", "name": name, "fields": fields})
    return Schema(SchemaType.AVRO, text, tuple(Reference(other, other, 1) for other in used))


class Subjects:
    """Subjects by name, and how often each was asked for."""

    def __init__(self, *schemas: Schema) -> None:
        self._schemas = {json.loads(schema.text)["name"]: schema for schema in schemas}
        self.asked: Counter[str] = Counter()

    def resolve(self, reference: Reference) -> Schema:
        self.asked[reference.subject] += 1
        return self._schemas[reference.subject]


def test_what_several_schemas_refer_to_is_asked_for_once() -> None:
    subjects = Subjects(record("D"), record("B", "D"), record("C", "D"))

    schema = parse(record("A", "B", "C"), subjects.resolve)

    assert subjects.asked == {"B": 1, "C": 1, "D": 1}
    assert schema.references == (Reference("B", "B", 1), Reference("C", "C", 1))
    assert json.loads(schema.formatted("resolved"))["fields"][0]["type"]["fields"][0]["type"]["name"] == "D"


def test_of_two_references_with_one_name_the_first_is_meant() -> None:
    """As when two files import the same third, each by a reference of its own."""
    texts = {
        "money": "message Money { int64 units = 1; }",
        "money-copy": "message Money { string other = 1; }",
        "price": 'import "money.proto"; message Price { Money money = 1; }',
    }
    refers = {"price": (Reference("money.proto", "money-copy", 1),)}

    def resolve(reference: Reference) -> Schema:
        text = f'syntax = "proto3"; {texts[reference.subject]}'
        return Schema(SchemaType.PROTOBUF, text, refers.get(reference.subject, ()))

    main = 'syntax = "proto3"; import "money.proto"; import "price.proto"; message M { Price p = 1; }'
    both = Reference("money.proto", "money", 1), Reference("price.proto", "price", 1)
    schema = parse(Schema(SchemaType.PROTOBUF, main, both), resolve)

    assert isinstance(schema, ProtobufSchema)
    (money,) = [each for each in schema.files if each.name == "money.proto"]
    assert [field.name for field in money.message_type[0].field] == ["units"]


def test_a_reference_that_leads_back_to_itself_is_refused() -> None:
    subjects = Subjects(record("B", "C"), record("C", "B"))

    with pytest.raises(InvalidSchema, match="'B' leads back to itself"):
        parse(record("A", "B"), subjects.resolve)


def test_a_chain_of_references_is_followed_to_its_end() -> None:
    names = [f"R{number}" for number in range(MAX_REFERENCES)]
    chain = [record(name, *names[number + 1 : number + 2]) for number, name in enumerate(names)]

    schema = parse(record("A", "R0"), Subjects(*chain).resolve)

    assert schema.canonical.endswith('"type":"R0"}]}')
    with pytest.raises(InvalidSchema, match="nested too deeply to be written"):
        schema.formatted("resolved")
    assert kinds(schema, schema) == ["TOO_COMPLEX"]


def test_more_references_than_are_allowed_are_refused() -> None:
    names = [f"R{number}" for number in range(MAX_REFERENCES + 1)]

    with pytest.raises(InvalidSchema, match=f"more than {MAX_REFERENCES}"):
        parse(record("A", *names), Subjects(*map(record, names)).resolve)


def test_large_references_are_refused_before_they_are_all_read() -> None:
    names = [f"R{number}" for number in range(20)]
    large = [Schema(SchemaType.AVRO, record(name).text + " " * (MAX_TEXT_BYTES - 100)) for name in names]
    subjects = Subjects(*large)

    with pytest.raises(InvalidSchema, match="larger than"):
        parse(record("A", *names), subjects.resolve)
    assert len(subjects.asked) < len(names)


def test_a_reference_that_is_not_there_is_told_by_whoever_looked() -> None:
    with pytest.raises(InvalidSchema, match="There is no B"):
        parse(record("A", "B"), no_references)


def test_a_reference_of_another_format_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="another format: JSON"):
        parse(record("A", "B"), lambda _: Schema(SchemaType.JSON, "{}"))


@pytest.mark.parametrize("type_", SchemaType)
def test_a_schema_that_is_too_large_is_refused_unread(type_: SchemaType) -> None:
    with pytest.raises(InvalidSchema, match=f"{MAX_TEXT_BYTES} are allowed"):
        parse(Schema(type_, "ä" * (MAX_TEXT_BYTES // 2 + 1)), no_references)


@pytest.mark.parametrize("type_", SchemaType)
def test_half_a_character_is_refused(type_: SchemaType) -> None:
    with pytest.raises(InvalidSchema, match="half a surrogate pair"):
        parse(Schema(type_, '"\ud800"'), no_references)


def test_the_deepest_schemas_that_are_allowed_are_compared() -> None:
    arrays = '{"type":"array","items":' * MAX_DEPTH + '"int"' + "}" * MAX_DEPTH
    records = '"int"'
    for number in range(MAX_DEPTH // 3):
        records = f'{{"type":"record","name":"R{number}","fields":[{{"name":"f","type":{records}}}]}}'
    properties = '{"properties":{"a":' * (MAX_DEPTH // 2) + "true" + "}}" * (MAX_DEPTH // 2)
    excluded = '{"not":' * MAX_DEPTH + "true" + "}" * MAX_DEPTH

    for schema in (avro(arrays), avro(records), json_schema(properties), json_schema(excluded)):
        assert kinds(schema, schema) == []
