"""Schemas in files, as text: no registry."""

import pytest

from headrace.client.errors import ClientError
from headrace.client.schemas.files import pretty, read_reference, read_schema, reasons
from headrace.client.schemas.registry import Reference, Schema


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("order.avsc", '"string"', "AVRO"),
        ("order.json", "{}", "JSON"),
        ("ORDER.PROTO", 'syntax = "proto3";', "PROTOBUF"),
    ],
)
def test_a_file_says_by_its_name_what_it_is(name: str, text: str, found: str) -> None:
    assert read_schema(name, text) == Schema(text=text, type=found)
    assert read_schema(name, "{}", "JSON").type == "JSON"


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("order.txt", "{}", "order.txt: unknown suffix, expected .avsc, .json or .proto: give --type"),
        ("order.avsc", "  \n", "order.avsc is empty"),
        ("order.avsc", '{"type": ', "order.avsc is not JSON: "),
        ("order.json", "message Order {}", "order.json is not JSON: "),
    ],
)
def test_what_cannot_be_a_schema_is_not_sent(name: str, text: str, sentence: str) -> None:
    with pytest.raises(ClientError) as refused:
        read_schema(name, text)
    assert str(refused.value).startswith(sentence)


def test_a_reference_names_a_version_of_a_subject() -> None:
    assert read_reference("line.proto=:.ctx:lines:12") == Reference(
        name="line.proto", subject=":.ctx:lines", version=12
    )
    for text in ("line.proto", "line.proto=lines", "=lines:1", "a=b:latest"):
        with pytest.raises(ClientError, match="expected NAME=SUBJECT:VERSION"):
            read_reference(text)


def test_json_is_indented_and_protobuf_left_alone() -> None:
    assert pretty(Schema(text='{"type":"string"}')) == '{\n  "type": "string"\n}'
    assert pretty(Schema(text="message A {}\n", type="PROTOBUF")) == "message A {}"


def test_of_why_a_schema_does_not_fit_the_descriptions_are_shown() -> None:
    told = [
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/x') differs', additionalInfo:'long'}",
        "{oldSchemaVersion: 1}",
        "{compatibility: 'BACKWARD'}",
    ]
    assert reasons(told) == ["The type (path '/x') differs"]
    assert reasons(['{errorType:"A", description:"It is gone"}']) == ["It is gone"]
    assert reasons(["no", "no"]) == ["no"]
    assert reasons([]) == []
