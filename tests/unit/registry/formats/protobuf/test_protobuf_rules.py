"""The rules of compatibility for Protobuf schemas, a row a rule, as Confluent's registry publishes them."""

import pytest

from unit.registry.formats.given import kinds, proto, proto3


def m(*fields: str, more: str = "") -> str:
    return f'syntax = "proto3"; package p; message M {{ {" ".join(fields)} }} {more}'


def m2(*fields: str) -> str:
    return f'syntax = "proto2"; package p; message M {{ {" ".join(fields)} }}'


N, P = "message N { int32 x = 1; }", "message P { int32 x = 1; }"
ONEOF = "oneof o { string a = 1; string b = 2; }"

COMPATIBLE = {  # old schema, new schema
    "the same": (m("int32 a = 1;"), m("int32 a = 1;")),
    "a field added": (m("int32 a = 1;"), m("int32 a = 1;", "int32 b = 2;")),
    "a field gone": (m("int32 a = 1;", "int32 b = 2;"), m("int32 a = 1;")),
    "another name": (m("int32 a = 1;"), m("int32 b = 1;")),
    "fields in another order": (m("int32 a = 1;", "int32 b = 2;"), m("int32 b = 2;", "int32 a = 1;")),
    "a message added": (m(), m(more=N)),
    "messages in another order": (m(more=N), f'syntax = "proto3"; package p; {N} message M {{}}'),
    "an enum added": (m(), m(more="enum E { A = 0; }")),
    "an enum gone": (m(more="enum E { A = 0; }"), m()),
    "an enum's value added": (m(more="enum E { A = 0; }"), m(more="enum E { A = 0; B = 1; }")),
    "an enum's value gone": (m(more="enum E { A = 0; B = 1; }"), m(more="enum E { A = 0; }")),
    "an enum's value with another name": (m(more="enum E { A = 0; }"), m(more="enum E { B = 0; }")),
    "a number of the same wire type": (m("int32 a = 1;"), m("int64 a = 1;")),
    "a bool for a number": (m("uint64 a = 1;"), m("bool a = 1;")),
    "an enum for a number": (m("int32 a = 1;"), m("E a = 1;", more="enum E { A = 0; }")),
    "a zigzag number, longer": (m("sint32 a = 1;"), m("sint64 a = 1;")),
    "32 bits with a sign": (m("fixed32 a = 1;"), m("sfixed32 a = 1;")),
    "64 bits with a sign": (m("fixed64 a = 1;"), m("sfixed64 a = 1;")),
    "bytes for a string": (m("string a = 1;"), m("bytes a = 1;")),
    "strings for a string": (m("string a = 1;"), m("repeated string a = 1;")),
    "messages for a message": (m("N a = 1;", more=N), m("repeated N a = 1;", more=N)),
    "optional, said": (m("int32 a = 1;"), m("optional int32 a = 1;")),
    "optional, not said": (m("optional int32 a = 1;"), m("int32 a = 1;")),
    "a string that is no longer required": (m2("required string a = 1;"), m2("optional string a = 1;")),
    "an oneof gone with all it had": (m(ONEOF), m()),
    "an oneof's field that leaves it": (m(ONEOF), m("string a = 1;", "oneof o { string b = 2; }")),
    "an oneof with another name": (m(ONEOF), m(ONEOF.replace("oneof o", "oneof x"))),
    "an oneof with more": (m(ONEOF), m(ONEOF.replace("}", "string c = 3; }"))),
    "one field into a new oneof": (m("string a = 1;"), m("oneof o { string a = 1; string b = 2; }")),
    "a map to a map of more": (m("map<int32, string> a = 1;"), m("map<int64, bytes> a = 1;")),
    "a map gone, and its entries with it": (m("map<int32, string> a = 1;"), m()),
    "a type's name, written otherwise": (m("p.N a = 1;", more=N), m(".p.N a = 1;", more=N)),
    "syntax": (m("repeated string a = 1;"), m2("repeated string a = 1;")),
}

INCOMPATIBLE = {  # old schema, new schema, why not
    "another package": (m(), m().replace("package p", "package q"), ["PACKAGE_CHANGED"]),
    "a message gone": (m(more=N), m(), ["MESSAGE_REMOVED"]),
    "a nested message gone": (m(N), m(), ["MESSAGE_REMOVED"]),
    "a message with another name": (m(more=N), m(more=P), ["MESSAGE_REMOVED"]),
    "a string for a number": (m("int32 a = 1;"), m("string a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    "a zigzag number": (m("int32 a = 1;"), m("sint32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    "a fixed number": (m("int32 a = 1;"), m("fixed32 a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    "a double for a float": (m("float a = 1;"), m("double a = 1;"), ["FIELD_SCALAR_KIND_CHANGED"]),
    "a message for a number": (m("int32 a = 1;", more=N), m("N a = 1;", more=N), ["FIELD_KIND_CHANGED"]),
    "a string for a message": (m("N a = 1;", more=N), m("string a = 1;", more=N), ["FIELD_KIND_CHANGED"]),
    "a map for messages": (
        m("repeated N a = 1;", more=N),
        m("map<string, int32> a = 1;", more=N),
        ["FIELD_KIND_CHANGED"],
    ),
    "a group for a message": (
        m2("optional G g = 1;", "message G {}"),
        m2("optional group G = 1 {}"),
        ["FIELD_KIND_CHANGED"],
    ),
    "another message": (m("N a = 1;", more=N + P), m("P a = 1;", more=N + P), ["FIELD_NAMED_TYPE_CHANGED"]),
    "a map of other values": (
        m("map<int32, string> a = 1;"),
        m("map<int32, int32> a = 1;"),
        ["FIELD_SCALAR_KIND_CHANGED"],
    ),
    "a nested field of another type": (
        m("message N { int32 x = 1; }"),
        m("message N { string x = 1; }"),
        ["FIELD_SCALAR_KIND_CHANGED"],
    ),
    "numbers for a number": (
        m2("optional int32 a = 1;"),
        m2("repeated int32 a = 1;"),
        ["FIELD_NUMERIC_LABEL_CHANGED"],
    ),
    "a number for packed numbers": (
        m("repeated int32 a = 1;"),
        m("int32 a = 1;"),
        ["FIELD_NUMERIC_LABEL_CHANGED"],
    ),
    "a number that is required now": (
        m2("optional int32 a = 1;"),
        m2("required int32 a = 1;"),
        ["FIELD_NUMERIC_LABEL_CHANGED"],
    ),
    "a string that is required now": (
        m2("optional string a = 1;"),
        m2("required string a = 1;"),
        ["REQUIRED_FIELD_ADDED"],
    ),
    "a required field added": (m2(), m2("required int32 a = 1;"), ["REQUIRED_FIELD_ADDED"]),
    "a required field gone": (m2("required int32 a = 1;"), m2(), ["REQUIRED_FIELD_REMOVED"]),
    "a field of an oneof gone": (m(ONEOF), m("oneof o { string a = 1; }"), ["ONEOF_FIELD_REMOVED"]),
    "two fields into an oneof": (
        m("string a = 1;", "string b = 2;"),
        m(ONEOF),
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"],
    ),
    "a field into an oneof that was there": (
        m("string c = 3;", ONEOF),
        m(ONEOF.replace("}", "string c = 3; }")),
        ["FIELD_MOVED_TO_EXISTING_ONEOF"],
    ),
    "optional fields into an oneof": (
        m("optional string a = 1;", "optional string b = 2;"),
        m(ONEOF),
        ["MULTIPLE_FIELDS_MOVED_TO_ONEOF"],
    ),
    "another type, in an oneof with another name": (
        m(ONEOF),
        m("oneof x { string a = 1; int32 b = 2; }"),
        ["FIELD_SCALAR_KIND_CHANGED"],
    ),
    "required, in an edition's words": (
        'edition = "2023"; package p; message M {}',
        'edition = "2023"; package p; message M { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }',
        ["REQUIRED_FIELD_ADDED"],
    ),
}


@pytest.mark.parametrize(("old", "new"), COMPATIBLE.values(), ids=COMPATIBLE)
def test_a_schema_that_reads_what_was_written_is_compatible(old: str, new: str) -> None:
    assert kinds(proto(new), proto(old)) == []


@pytest.mark.parametrize(("old", "new", "why"), INCOMPATIBLE.values(), ids=INCOMPATIBLE)
def test_a_schema_that_does_not_is_not(old: str, new: str, why: list[str]) -> None:
    assert kinds(proto(new), proto(old)) == why


USER = 'import "n.proto"; package p; message M { q.N n = 1; }'


def imported(fields: str, package: str = "q") -> str:
    return f'syntax = "proto3"; package {package}; message N {{ {fields} }} message Unused {{ {fields} }}'


def test_an_imported_message_is_compared_where_it_is_used() -> None:
    old = proto3(USER, n_proto=imported("int32 x = 1;"))

    assert kinds(proto3(USER, n_proto=imported("int64 y = 1;")), old) == []
    assert kinds(proto3(USER, n_proto=imported("string x = 1;")), old) == [
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
    ]


def test_an_imported_message_may_come_from_another_package() -> None:
    old = proto3(USER, n_proto=imported("int32 x = 1;"))
    new = proto3(USER.replace("q.N", "r.N"), n_proto=imported("int32 x = 1;", "r"))

    assert kinds(new, old) == []


def test_messages_that_contain_each_other_are_compared_once() -> None:
    both = "package p; message A { B b = 1; map<string, A> m = 2; } message B { A a = 1; repeated B b = 2; }"

    assert kinds(proto3(both), proto3(both)) == []
