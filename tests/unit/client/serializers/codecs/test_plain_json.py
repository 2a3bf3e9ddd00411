"""What `decode` returns is JSON that `encode_plain` turns into an equal value, whatever the schema."""

import io
import json
import math
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from itertools import count
from typing import Any
from uuid import UUID

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.serializers.codecs.base import BadValue, Codec
from headrace.client.serializers.codecs.codec import codec_of
from headrace.registry.formats import Schema, SchemaType, parse
from headrace.registry.schema_ids import read_message_path, write_message_path

# -- Avro: schemas and values of them --------------------------------------------------------------


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "logicalType": name, **more}


def in_utc(**unit: int) -> st.SearchStrategy[datetime]:
    """Times from 1583 to 2300, in whole units."""
    return st.integers(-(10**10), 10**10).map(
        lambda number: datetime(1970, 1, 1, tzinfo=UTC) + number * timedelta(**unit)
    )


def of_day(**unit: int) -> st.SearchStrategy[time]:
    most = timedelta(days=1) // timedelta(**unit) - 1
    return st.integers(0, most).map(lambda number: (datetime(1970, 1, 1) + number * timedelta(**unit)).time())  # noqa: DTZ001


LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", st.integers(-(2**63), 2**63 - 1)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("double", st.floats(allow_nan=False)),
    ("bytes", st.binary(max_size=5)),
    ("string", st.text(max_size=5) | st.sampled_from(["nan", "inf", "AAAA", "2026-01-01", "1.50"])),
    (logical("long", "timestamp-millis"), in_utc(milliseconds=1)),
    (logical("long", "timestamp-micros"), in_utc(microseconds=1)),
    (
        logical("long", "local-timestamp-millis"),
        in_utc(milliseconds=1).map(lambda at: at.replace(tzinfo=None)),
    ),
    (logical("int", "date"), st.dates(date(1, 1, 1), date(9999, 12, 31))),
    (logical("int", "time-millis"), of_day(milliseconds=1)),
    (logical("long", "time-micros"), of_day(microseconds=1)),
    (
        logical("bytes", "decimal", precision=6, scale=2),
        st.integers(-(10**6) + 1, 10**6 - 1).map(lambda n: Decimal(n).scaleb(-2)),
    ),
    (logical("string", "uuid"), st.uuids()),
    (logical("long", "unheard-of"), st.integers(0, 5)),
]
SYMBOLS = ["A", "B", "nan"]


@st.composite
def schemas(draw: st.DrawFn) -> tuple[Any, st.SearchStrategy[Any]]:
    """A schema, and values of it as fastavro takes them."""
    numbers = count()

    def make(depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        kinds = ["leaf", "enum", "fixed"]
        kind = draw(st.sampled_from(kinds if not depth else [*kinds, "record", "array", "map", "union"]))
        return makers[kind](depth)

    def leaf(_depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        found: tuple[Any, st.SearchStrategy[Any]] = draw(st.sampled_from(LEAVES))
        return found

    def enum(_depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return {"type": "enum", "name": f"shop.E{next(numbers)}", "symbols": SYMBOLS}, st.sampled_from(
            SYMBOLS
        )

    def fixed(_depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        return {"type": "fixed", "name": f"shop.F{next(numbers)}", "size": 3}, st.binary(
            min_size=3, max_size=3
        )

    def record(depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        name = f"shop.R{next(numbers)}"
        fields = {each: make(depth - 1) for each in draw(st.sampled_from(["a", "ab", "abc"]))}
        schema = {
            "type": "record",
            "name": name,
            "fields": [{"name": each, "type": kind} for each, (kind, _) in fields.items()],
        }
        return schema, st.fixed_dictionaries({each: values for each, (_, values) in fields.items()})

    def array(depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        kind, values = make(depth - 1)
        return {"type": "array", "items": kind}, st.lists(values, max_size=3)

    def map_(depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        kind, values = make(depth - 1)
        keys = st.sampled_from(["a", "string", "map", "shop.R1", ""])
        return {"type": "map", "values": kind}, st.dictionaries(keys, values, max_size=2)

    def union(depth: int) -> tuple[Any, st.SearchStrategy[Any]]:
        branches: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {}
        for _ in range(draw(st.integers(1, 4))):
            kind, values = make(depth - 1)
            if not isinstance(kind, list):
                name = type_name(kind)
                branches.setdefault(name, (kind, st.tuples(st.just(name), values)))
        if not branches:
            return leaf(depth)
        return [kind for kind, _ in branches.values()], st.one_of(
            *(values for _, values in branches.values())
        )

    makers = {
        "leaf": leaf,
        "enum": enum,
        "fixed": fixed,
        "record": record,
        "array": array,
        "map": map_,
        "union": union,
    }
    return make(3)


def type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else kind.get("name", kind["type"])


def codec(kind: SchemaType, text: str) -> Codec:
    return codec_of(parse(Schema(kind, text), lambda each: pytest.fail(str(each))))


def read(schema: Any, data: bytes) -> Any:
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    return fastavro.schemaless_reader(io.BytesIO(data), parsed, None, return_named_type=True)


@given(st.data())
def test_any_avro_value_is_equal_after_it_was_printed_as_json(data: st.DataObject) -> None:
    schema, values = data.draw(schemas())
    value = data.draw(values)
    avro, written = codec(SchemaType.AVRO, json.dumps(schema)), io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(json.loads(json.dumps(schema))), value)

    printed = json.dumps(avro.decode(written.getvalue()), allow_nan=False)
    again = avro.encode_plain(json.loads(printed))

    assert read(schema, again) == read(schema, written.getvalue()), printed


DECIMAL = logical("bytes", "decimal", precision=6, scale=2)
FIXED_DECIMAL = {"name": "D", "size": 4, **logical("fixed", "decimal", precision=6, scale=2)}
TIME_MILLIS, TIME_MICROS = logical("int", "time-millis"), logical("long", "time-micros")


@pytest.mark.parametrize(
    ("schema", "value", "shown"),
    [
        ("bytes", b"\x00\xff", "AP8="),
        (logical("bytes", "decimal", precision=6, scale=2), Decimal("1.50"), "1.50"),
        (
            logical("long", "timestamp-millis"),
            datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
            "2026-01-02T03:04:05+00:00",
        ),
        (logical("string", "uuid"), UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (["null", "string"], "x", "x"),
        (["null", "string"], None, None),
        (["null", "bytes", "string"], "AAAA", {"string": "AAAA"}),
        (["string", "double"], math.inf, {"double": "inf"}),
        (["string", "double"], "inf", "inf"),
        (["string", {"type": "map", "values": "string"}], {"string": "x"}, {"map": {"string": "x"}}),
        (["string", {"type": "map", "values": "string"}], {"a": "x"}, {"a": "x"}),
        ([TIME_MILLIS, TIME_MICROS], ("long", time(1, 2, 3, 4)), {"long": "01:02:03.000004"}),
        ([FIXED_DECIMAL, DECIMAL], ("bytes", Decimal("1.50")), {"bytes": "1.50"}),
    ],
)
def test_avro_is_plain_json_and_names_a_branch_only_where_that_is_needed(
    schema: Any, value: Any, shown: Any
) -> None:
    avro, written = codec(SchemaType.AVRO, json.dumps(schema)), io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(schema), value)

    assert avro.decode(written.getvalue()) == shown
    assert avro.encode_plain(shown) == written.getvalue()


ONE = {"type": "record", "name": "One", "fields": [{"name": "a", "type": "int"}]}
OTHER = {"type": "record", "name": "Other", "fields": [{"name": "b", "type": "int"}]}
SAME = ONE | {"name": "Same"}
MILLIS = logical("long", "timestamp-millis")


@pytest.mark.parametrize(
    ("schema", "value", "equal"),
    [
        (MILLIS, 1767323045000, "2026-01-02T03:04:05Z"),
        (["null", MILLIS], {"long": 1767323045000}, "2026-01-02T04:04:05+01:00"),
        (DECIMAL, 1.5, "1.50"),
        (["null", DECIMAL], 1.5, "1.50"),
        (["null", DECIMAL], 15, "15"),
        (logical("bytes", "decimal", precision=20, scale=2), 123456789012345678, "123456789012345678.00"),
        (["null", "string"], {"string": "x"}, "x"),
        ([ONE, OTHER], {"b": 1}, {"Other": {"b": 1}}),
        (["float", "double"], 1.1, {"double": 1.1}),
        (["string", "bytes"], "AAAA", {"string": "AAAA"}),
        ([{"type": "enum", "name": "E", "symbols": ["A"]}, "string"], "A", {"string": "A"}),
    ],
)
def test_what_a_person_types_is_understood(schema: Any, value: Any, equal: Any) -> None:
    avro = codec(SchemaType.AVRO, json.dumps(schema))
    assert avro.encode_plain(value) == avro.encode_plain(equal)


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        ([ONE, SAME], {"a": 1}, 'may be One or Same of its union: name the branch, as in {"One": …}'),
        ("bytes", "tea", "is 'tea', expected bytes in base64"),
        ({"type": "fixed", "name": "F", "size": 4}, "AAAA", "has 3 bytes, expected 4"),
        (MILLIS, "2026-01-02T03:04:05", "expected timestamp-millis with a time zone"),
        (logical("long", "local-timestamp-millis"), "2026-01-02T03:04:05Z", "with no time zone"),
        (MILLIS, "tomorrow", "is 'tomorrow', expected timestamp-millis"),
        (
            logical("bytes", "decimal", precision=4, scale=2),
            "1.555",
            "with 4 digits, 2 of them after the point",
        ),
        (logical("bytes", "decimal", precision=4, scale=2), "1e999999999", "with 4 digits, 2 of them"),
        (logical("bytes", "decimal", precision=4, scale=2), "NaN", "with 4 digits, 2 of them"),
        (DECIMAL, "0e99999999", "with 6 digits, 2 of them"),
        (logical("bytes", "decimal", precision=5000, scale=4000), 0.5, "write such decimals as strings"),
        (
            logical("bytes", "decimal", precision=20, scale=2),
            123456789012345678.91,
            "is 1.2345678901234568e+17, which may have lost digits: write such decimals as strings",
        ),
        (logical("string", "uuid"), "7", "is '7', expected uuid"),
        ("int", 2**31, "is 2147483648, which is outside of int"),
        ("boolean", 1, "is a number, expected boolean"),
        (["null", "int", "string"], [], "is a list, which fits no branch of its union: int, string"),
        (["null", "int"], "x", "is a string, expected int"),
    ],
)
def test_what_does_not_fit_is_refused(schema: Any, value: Any, why: str) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "f", "type": schema}]}
    with pytest.raises(BadValue) as refusal:
        codec(SchemaType.AVRO, json.dumps(record)).encode_plain({"f": value})
    assert str(refusal.value).startswith("this does not fit the Avro schema: the field f ")
    assert why in str(refusal.value)


def test_a_recursive_union_costs_time_in_proportion_to_the_value() -> None:
    """Each of two branches could be tried at each level: 2 to the power of 60 attempts."""
    one = {"type": "record", "name": "A", "fields": [{"name": "next", "type": ["null", "A", "B"]}]}
    other = {"type": "record", "name": "B", "fields": [{"name": "next", "type": ["null", "A", "B"]}]}
    one["fields"][0]["type"] = ["null", "A", other]  # type: ignore[index]
    avro = codec(SchemaType.AVRO, json.dumps(one))
    data = b"\x04" * 60 + b"\x00"

    assert avro.encode_plain(avro.decode(data)) == data


# -- Protobuf ----------------------------------------------------------------------------------

PROTO = """syntax = "proto3"; package shop;
import "google/protobuf/timestamp.proto"; import "google/protobuf/wrappers.proto";
message First { int32 n = 1; }
message Order {
  enum State { NEW = 0; PAID = 5; }
  message Line { string item = 1; double price = 2; }
  int64 id = 1; uint64 large = 2; bytes data = 3; State state = 4; repeated Line lines = 5;
  map<string, sint64> counts = 6; oneof how { string card = 7; bool cash = 8; Line other = 9; }
  optional float ratio = 10; google.protobuf.Timestamp at = 11; google.protobuf.StringValue note = 12;
  repeated fixed32 numbers = 13; map<bool, State> states = 14;
}"""
ORDERS = [
    {},
    {"id": "-9223372036854775808", "large": "18446744073709551615", "data": "AP8=", "state": "PAID"},
    {"state": 77, "cash": False, "ratio": 0.0, "note": "", "numbers": [0, 4294967295]},
    {"card": "", "lines": [{"item": "tea", "price": "NaN"}, {}], "counts": {"a": "-1", "": "0"}},
    {"other": {}, "ratio": "Infinity", "at": "2026-01-02T03:04:05.000000006Z", "states": {"true": "PAID"}},
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_a_protobuf_message_of_any_place_in_its_file_is_equal_afterwards(order: dict[str, Any]) -> None:
    proto = codec(SchemaType.PROTOBUF, PROTO)
    data = proto.encode_plain(order, "shop.Order")
    printed = json.loads(json.dumps(proto.decode(data)))

    assert data.startswith(b"\x02\x02")
    assert proto.message_name(data) == "shop.Order"
    assert printed.keys() >= order.keys()
    again = proto.encode_plain(printed, "shop.Order")
    assert (len(again), proto.decode(again)) == (len(data), printed)  # entries of a map have any order


def test_messages_of_protobuf_are_found_by_their_names() -> None:
    proto = codec(SchemaType.PROTOBUF, PROTO)
    assert proto.message_name(proto.encode_plain({"n": 1})) == "shop.First"
    inner = proto.encode_plain({"item": "tea"}, "shop.Order.Line")
    assert proto.message_name(inner) == "shop.Order.Line"
    with pytest.raises(BadValue, match=r"the Protobuf schema has no message shop\.Nothing"):
        proto.encode_plain({}, "shop.Nothing")


@given(st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=100).map(tuple))
def test_a_message_path_is_read_as_it_was_written(path: tuple[int, ...]) -> None:
    assert read_message_path(write_message_path(path), 0) == (path, len(write_message_path(path)))
