"""Schemas of all three formats against the libraries that use them: what we call compatible works."""

import base64
import io
import json
import os
from typing import Any

import fastavro
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, note, settings
from hypothesis import strategies as st

from headrace.registry.formats import InvalidSchema, SchemaType
from property.schemas import avro as avros
from property.schemas import json_schema as jsons
from property.schemas import protobuf as protos
from unit.registry.formats.given import avro, json_schema, kinds, parsed, proto
from unit.registry.formats.protobuf.test_protobuf_schemas import ALL_OF_IT

EXAMPLES = 20 * int(os.environ.get("HEADRACE_EXAMPLES", "3"))
searched = settings(
    max_examples=EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
fewer = settings(max_examples=EXAMPLES // 5, deadline=None)  # each asks protoc


def read_by(new: Any, old: Any, value: Any) -> Any:
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(old), value)
    written.seek(0)
    return fastavro.schemaless_reader(written, fastavro.parse_schema(old), fastavro.parse_schema(new))


@searched
@given(avros.cases())
def test_fastavro_reads_by_a_schema_whatever_a_compatible_one_wrote(case: tuple[Any, Any, Any]) -> None:
    old, value, new = case
    note(json.dumps({"old": old, "new": new}))
    assume(kinds(avro(json.dumps(new)), avro(json.dumps(old))) == [])

    read_by(new, old, value)


@pytest.mark.parametrize("new", avros.DEFAULTS)
@pytest.mark.parametrize("old", avros.DEFAULTS)
def test_fastavro_does_not_read_what_an_incompatible_schema_wrote(old: str, new: str) -> None:
    value = {"bytes": b"b"}.get(old, avros.DEFAULTS[old])
    if kinds(avro(f'"{new}"'), avro(f'"{old}"')):
        with pytest.raises(fastavro.read.SchemaResolutionError):
            read_by(new, old, value)
    else:
        assert read_by(new, old, value) in {value, b"s", "b"}


@searched
@given(avros.types(3, "R"))
def test_an_avro_schema_is_compatible_with_itself_and_keeps_its_text(node: Any) -> None:
    schema = avro(json.dumps(node))

    assert kinds(schema, schema) == []
    assert avro(schema.canonical).canonical == schema.canonical
    assert avro(schema.normalized).normalized == schema.normalized
    assert fastavro.schema.to_parsing_canonical_form(json.loads(schema.canonical)) == (
        fastavro.schema.to_parsing_canonical_form(node)
    )


@searched
@given(jsons.cases())
def test_documents_of_a_schema_are_documents_of_a_compatible_one(case: tuple[Any, Any]) -> None:
    old, new = case
    note(json.dumps({"old": old, "new": new}))
    assume(kinds(json_schema(json.dumps(new)), json_schema(json.dumps(old))) == [])
    before, after = (jsonschema_rs.validator_for(schema, validate_formats=False) for schema in (old, new))

    assert [one for one in jsons.DOCUMENTS if before.is_valid(one) and not after.is_valid(one)] == []


@searched
@given(jsons.schemas(2), st.sampled_from([jsons.D7, jsons.D2020]))
def test_a_json_schema_is_compatible_with_itself_and_keeps_its_text(node: Any, draft: str) -> None:
    schema = json_schema(json.dumps(jsons.in_draft(node, draft)))

    assert kinds(schema, schema) == []
    assert json_schema(schema.canonical).canonical == schema.canonical


@fewer
@given(protos.files())
def test_a_proto_file_is_compatible_with_itself_and_the_same_descriptor_again(text: str) -> None:
    note(text)
    schema = proto(text)
    again = proto(schema.canonical)

    assert again.formatted("serialized") == schema.formatted("serialized")
    assert proto(schema.formatted("serialized")).canonical == schema.canonical
    assert kinds(again, schema) == kinds(schema, again) == []


@searched
@given(st.sampled_from([SchemaType.AVRO, SchemaType.JSON]), st.text() | jsons.documents.map(json.dumps))
def test_any_text_is_a_schema_or_refused_with_a_sentence(type_: SchemaType, text: str) -> None:
    try:
        schema = parsed(type_, text, {})
    except InvalidSchema:
        return

    assert parsed(type_, schema.canonical, {}).canonical == schema.canonical


@fewer
@given(st.lists(st.tuples(st.integers(0), st.integers(0, 255)), min_size=1, max_size=3))
def test_a_damaged_descriptor_is_a_schema_or_refused_with_a_sentence(damage: list[tuple[int, int]]) -> None:
    descriptor = bytearray(base64.b64decode(proto(ALL_OF_IT).formatted("serialized")))
    for place, byte in damage:
        descriptor[place % len(descriptor)] = byte
    try:
        schema = proto(base64.b64encode(descriptor).decode())
    except InvalidSchema:
        return

    assert proto(schema.canonical).canonical == schema.canonical
