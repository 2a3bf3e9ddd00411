"""Protobuf schemas: what is one, the two forms it comes in, and its one text."""

import base64
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto  # type: ignore[import-untyped]
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP  # type: ignore[import-untyped]

from headrace.registry.formats import InvalidSchema, Reference, Schema, SchemaType, parse
from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from unit.registry.formats.given import no_references, proto, proto3

ALL_OF_IT = r"""
syntax = "proto2";
package a.b;
import public "google/protobuf/descriptor.proto";
import "google/protobuf/timestamp.proto";
import "google/type/date.proto";
import "confluent/meta.proto";
option java_package = "x.\"y\"";
option (mine) = { s: "q" n: 5 sub { s: "r" } };
option (confluent.file_meta).doc = "hello";
extend google.protobuf.FileOptions { optional Mine mine = 50000; }
extend google.protobuf.FieldOptions {
  repeated int32 many = 50001;
  optional double some = 50002;
  optional E one = 50003;
  optional bytes raw = 50004;
}
message Mine { optional string s = 1; optional int32 n = 2; optional Mine sub = 3; }
enum E {
  option allow_alias = true;
  A = 0; B = 1; C = 1; D = -5;
  reserved -1, 5 to 7, 100 to max;
  reserved "Q";
}
message M {
  option deprecated = true;
  message N { optional int32 x = 1; }
  map<string, N> m = 1;
  message O { optional .a.b.M.N n = 1; optional E e = 2 [deprecated = true]; }
  optional group G = 2 { optional int32 z = 1; repeated group H = 2 { optional N n = 1; } }
  oneof one { string s1 = 3; int32 i1 = 4; group J = 44 { optional int32 y = 1; } }
  required string r = 5 [default = "a\n\"b\\ü'"];
  optional bytes by = 6 [default = "a\xff\"\000"];
  optional float f = 7
    [default = -inf, (many) = 1, (many) = 2, (some) = 1.5e-7, (.a.b.one) = B, (raw) = "\x00\xff"];
  optional E e = 8 [default = B];
  repeated int32 packed = 9 [packed = true];
  optional int32 some_name = 10 [json_name = "other"];
  extensions 100 to 199, 500 to max [verification = UNVERIFIED];
  reserved 20, 22 to 30; reserved "foo", "bar";
  extend M { optional int32 ext = 100; optional group K = 101 {} }
  optional google.protobuf.Timestamp ts = 11;
  optional google.type.Date d = 12;
  map<int32, E> m2 = 13;
  message a { optional E e = 2; optional .a.b.Mine o = 3; optional a self = 4; }
  optional double nan = 14 [default = nan];
  optional bool flag = 15 [default = true];
}
service S {
  option deprecated = true;
  rpc X (M) returns (stream M);
  rpc Y (stream M.N) returns (google.protobuf.Timestamp) { option idempotency_level = IDEMPOTENT; }
}
"""
FILES = {
    "all of proto2": ALL_OF_IT,
    "proto3": """syntax = "proto3"; message M { optional int32 a = 1; oneof x { int32 b = 2; }
        map<string, M> e = 4; repeated E many = 5; enum E { A = 0; } } """,
    "edition 2023": """edition = "2023"; import "google/protobuf/cpp_features.proto"; package p;
        option features.field_presence = IMPLICIT;
        message M { reserved foo; int32 a = 1 [features.field_presence = LEGACY_REQUIRED];
        string s = 2 [features.(pb.cpp).string_type = VIEW];
        M g = 3 [features.message_encoding = DELIMITED]; } """,
    "edition 2024": """edition = "2024"; package p; export message M { int32 a = 1; } local message N {}""",
    "no syntax": "message M { optional int32 a = 1; }",
    "a package, a message and a message in it of one name": """syntax = "proto2"; package M;
        message M { message M {} optional .M.M a = 1; optional .M.M.M b = 2; }""",
    "messages after the maps they use": """syntax = "proto3";
        message M { map<int32, N> a = 2; message N {} map<int32, O> b = 1; message O {} }""",
    "types that are called as words are": """syntax = "proto3";
        message T { message message {} enum map { A = 0; } message int32 { int32 x = 1; }
        .T.message a = 1; .T.map b = 2; .T.int32 c = 3; map<string, .T.int32> d = 4; }""",
    "only an enum": 'syntax = "proto3"; enum E { A = 0; }',
}

INVALID = {
    "nothing": "",
    "only syntax": 'syntax = "proto3";',
    "not proto": "hello, world",
    "a message cut off": 'syntax = "proto3"; message',
    "a type that nobody knows": 'syntax = "proto3"; message M { strin a = 1; }',
    "a number twice": 'syntax = "proto3"; message M { int32 a = 1; int32 b = 1; }',
    "an import that nobody gave": 'syntax = "proto3"; import "x.proto"; message M {}',
    "an import from this machine": 'syntax = "proto3"; import "/etc/passwd"; message M {}',
    "an import from elsewhere on this machine": 'syntax = "proto3"; import "../../x.proto"; message M {}',
    "base64 of nothing": "AAAA",
    "base64 that is not padded": "abcde",
    "messages five thousand deep": 'syntax = "proto3";' + "message M {" * 5000 + "}" * 5000,
    "an option a hundred thousand deep, which kills protoc": (
        'syntax = "proto3"; import "google/protobuf/descriptor.proto"; message M { M m = 1; } '
        "extend google.protobuf.FileOptions { M foo = 50000; } option (foo) = "
        + "{m: " * 100_000
        + "}" * 100_000
        + ";"
    ),
}


def file(schema: Any) -> FileDescriptorProto:
    assert isinstance(schema, ProtobufSchema)
    return schema.file


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_text_written_from_a_descriptor_is_that_descriptor_again(text: str) -> None:
    once = proto(text)
    again = proto(once.canonical)

    assert file(again) == file(once)
    assert again.canonical == once.canonical


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_descriptor_in_base64_is_the_schema_that_it_was_made_from(text: str) -> None:
    once = proto(text)

    assert proto(once.formatted("serialized")).canonical == once.canonical


@pytest.mark.parametrize("text", FILES.values(), ids=FILES)
def test_a_normalized_text_stays_as_it_is(text: str) -> None:
    normalized = proto(text).normalized

    assert proto(normalized).normalized == normalized


@pytest.mark.parametrize("text", INVALID.values(), ids=INVALID)
def test_what_is_no_protobuf_schema_is_refused(text: str) -> None:
    with pytest.raises(InvalidSchema):
        proto(text)


def test_an_error_has_its_line_and_column() -> None:
    with pytest.raises(InvalidSchema, match=r'^The schema is not valid\. Line 3, column 3: "strin" is not'):
        proto('syntax = "proto3";\nmessage M {\n  strin a = 1;\n}')


def test_an_error_in_an_import_says_so() -> None:
    with pytest.raises(InvalidSchema, match=r"In 'n\.proto', line 1, column \d+"):
        proto3('import "n.proto"; message M {}', n_proto='syntax = "proto3"; message N { strin a = 1; }')


def test_the_text_reads_as_people_write() -> None:
    text = "package p;import 'n.proto'; message M{q.N n=1;O o=2;message O{repeated O o=1[deprecated=true];}}"

    assert proto3(text, n_proto='syntax = "proto3"; package q; message N {}').canonical == (
        'syntax = "proto3";\npackage p;\n\nimport "n.proto";\n\n'
        "message M {\n  q.N n = 1;\n  O o = 2;\n"
        "  message O {\n    repeated O o = 1 [deprecated = true];\n  }\n}\n"
    )


def test_nested_messages_keep_their_numbers_among_what_maps_bring_along() -> None:
    """A record says by such numbers which message it is."""
    schema = proto3(
        "message M { message A {} map<int32, int32> m = 1; message B {} map<int32, int32> l = 2; }"
    )
    written = file(proto(schema.canonical)).message_type[0]

    assert [nested.name for nested in written.nested_type] == ["A", "MEntry", "B", "LEntry"]


def test_normalized_fields_are_in_the_order_of_their_numbers() -> None:
    one = proto3(
        "import 'google/protobuf/any.proto'; message M { int32 b = 2; oneof o { int32 c = 3; int32 a = 1; } }"
    )
    other = proto3(
        "import 'google/protobuf/any.proto'; message M { oneof o { int32 a = 1; int32 c = 3; } int32 b = 2; }"
    )

    assert one.canonical != other.canonical
    assert one.normalized == other.normalized


def test_options_that_people_defined_are_left_out_if_asked() -> None:
    schema = proto3(
        'import "confluent/meta.proto"; message M { int32 a = 1 [(confluent.field_meta).doc = "d"]; }'
    )

    assert '[(confluent.field_meta) = { doc: "d" }]' in schema.canonical
    assert "int32 a = 1;" in schema.formatted("ignore_extensions")


def test_the_schema_of_a_generated_class_is_taken_as_its_client_posts_it() -> None:
    text = base64.standard_b64encode(TIMESTAMP.serialized_pb).decode()

    assert "message Timestamp {\n  int64 seconds = 1;\n  int32 nanos = 2;\n}" in proto(text).canonical


def test_a_descriptor_with_options_that_people_defined_is_taken_with_its_imports() -> None:
    options = (
        'syntax = "proto2"; import "google/protobuf/descriptor.proto"; extend google.protobuf.FieldOptions '
    )
    options += "{ optional int32 mine = 50000; }"
    text = proto3('import "o.proto"; message M { int32 a = 1 [(mine) = 7]; }', o_proto=options)

    serialized = proto(text.formatted("serialized"), o_proto=options)

    assert "int32 a = 1 [(mine) = 7];" in serialized.canonical == text.canonical


@pytest.mark.parametrize(
    "name", ["/x.proto", "../x.proto", "a/../x.proto", "a//x.proto", "x", "x\\y.proto", "\n.proto"]
)
def test_an_import_is_never_written_or_read_outside(name: str) -> None:
    schema = Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message M {}', (Reference(name, "x", 1),))

    with pytest.raises(InvalidSchema, match="name of an import"):
        parse(schema, lambda _: Schema(SchemaType.PROTOBUF, 'syntax = "proto3"; message N {}'))


@pytest.mark.parametrize("damage", range(6))
def test_a_descriptor_that_contradicts_itself_is_refused(damage: int) -> None:
    written = FileDescriptorProto()
    written.CopyFrom(file(proto3("message M { map<int32, int32> m = 1; oneof o { int32 a = 2; } }")))
    message = written.message_type[0]
    match damage:
        case 0:
            del message.nested_type[0].field[1]
        case 1:
            message.field[1].oneof_index = 7
        case 2:
            message.field[0].type_name = ".Nobody"
        case 3:
            message.name = "M { } message X"
        case 4:  # an option whose own bytes are cut off
            written.dependency.append("confluent/meta.proto")
        case _:
            written.dependency.append("nobody.proto")
    data = written.SerializeToString()
    if damage == 4:  # by hand, as protobuf itself may know this option
        data += bytes([8 << 3 | 2, 4]) + b"\x82\x44\x01\x0a"
    text = base64.standard_b64encode(data).decode()

    with pytest.raises(InvalidSchema):
        parse(Schema(SchemaType.PROTOBUF, text), no_references)


def test_what_the_compiler_takes_and_the_runtime_does_not_is_no_schema() -> None:
    """Numbers from 19000 to 19999 are protobuf's own."""
    numbers = (number if number < 19_000 else number + 1001 for number in range(1, 33_000))
    fields = " ".join(f"int32 f{number} = {number};" for number in numbers)

    with pytest.raises(InvalidSchema, match="Protobuf cannot load it"):
        proto3(f"message M {{ {fields} }}")
