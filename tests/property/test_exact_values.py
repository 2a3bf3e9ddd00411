"""Values between a writer's schema and the reader's: a column has the value that was written, or a reason.

The oracles are the formats' own libraries with the writer's schema, and Python's fractions and decimals.
"""

import io
import json
import math
import os
import struct
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import fastavro
import pyarrow as pa
from google.protobuf.message_factory import GetMessageClass  # type: ignore[import-untyped]
from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from headrace.registry.formats.protobuf.protobuf import ProtobufSchema
from headrace.tables.registry.batches import decode_rows, reader_of
from headrace.tables.registry.json_rows import json_columns
from headrace.tables.registry.reader import ResolvedSchema
from headrace.tables.registry.shapes import columns_of
from unit.tables.registry.given import whole

EXAMPLES = 200 * int(os.environ.get("HEADRACE_EXAMPLES", "1"))
searched = settings(max_examples=EXAMPLES, deadline=None)
REFUSED = object()
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def outcome(reader: ResolvedSchema, writer: ResolvedSchema, payload: bytes) -> Any:
    """The column `x` of the row, or REFUSED."""
    found = reader_of(reader)
    columns, decode = columns_of(found.shape), found.decoder_for(writer)
    rows = decode_rows(columns, decode, [payload])
    rows.validate(full=True)
    (reason,) = rows.field("reason").to_pylist()
    note(f"reason: {reason}")
    if reason is not None:
        assert reason
        return REFUSED
    return rows.field("row").field("x")[0]


# -- Avro ------------------------------------------------------------------------------------------

UNITS = {  # nanoseconds, of each kind of time
    "date": ("date", 86_400 * 10**9),
    "time-millis": ("time", 10**6),
    "time-micros": ("time", 10**3),
    "timestamp-millis": ("timestamp", 10**6),
    "timestamp-micros": ("timestamp", 10**3),
    "timestamp-nanos": ("timestamp", 1),
    "local-timestamp-millis": ("timestamp", 10**6),
    "local-timestamp-micros": ("timestamp", 10**3),
}
INTS = ("int", "long")
RANGES = {"int": 2**31, "long": 2**63}


def avro_types() -> list[Any]:
    kinds = dict.fromkeys(UNITS, "long") | {"date": "int", "time-millis": "int"}
    decimals = [(9, 2), (12, 4), (5, 0), (38, 2)]
    return [
        *("int", "long", "float", "double", "string", "bytes", "boolean"),
        *({"type": kind, "logicalType": name} for name, kind in kinds.items()),
        *({"type": "bytes", "logicalType": "decimal", "precision": p, "scale": s} for p, s in decimals),
        {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]},
        {"type": "enum", "name": "E", "symbols": ["A", "B"], "default": "A"},
        {"type": "enum", "name": "E", "symbols": ["B", "A"]},
        {"type": "fixed", "name": "F", "size": 2},
    ]


def kind_of(type_: Any) -> str:
    return str(type_["type"]) if isinstance(type_, dict) else str(type_)


def meaning_of(type_: Any) -> str | None:
    return type_.get("logicalType") if isinstance(type_, dict) else None


def near(limit: int) -> st.SearchStrategy[int]:
    """Integers, many of them where a type ends or where a float has no more digits."""
    edges = [
        sign * (2**power) + more for power in (24, 31, 53, 60) for sign in (1, -1) for more in (-1, 0, 1)
    ]
    small = st.integers(-(10**9), 10**9).map(lambda number: number * 1000)
    anything = st.integers(-limit, limit - 1)
    return st.one_of(anything, small, st.sampled_from(edges)).filter(lambda each: -limit <= each < limit)


def values_of(type_: Any) -> st.SearchStrategy[Any]:
    kind = kind_of(type_)
    if kind in INTS:
        return near(RANGES[kind])
    if meaning_of(type_) == "decimal":
        return near(2**63).map(lambda number: number.to_bytes(12, "big", signed=True))
    if kind == "enum":
        return st.sampled_from(type_["symbols"])
    return {
        "float": st.floats(width=32, allow_nan=False),
        "double": st.floats(allow_nan=False),
        "string": st.text(max_size=5),
        "bytes": st.binary(max_size=5),
        "boolean": st.booleans(),
        "fixed": st.binary(min_size=2, max_size=2),
    }[kind]


def as_avro(old: Any, new: Any, value: Any) -> Any:
    """The exact value of a column of the new type, or REFUSED."""
    kinds, meanings = (kind_of(old), kind_of(new)), (meaning_of(old), meaning_of(new))
    if kinds[0] == "enum" == kinds[1]:
        return value if value in new["symbols"] else new.get("default", REFUSED)
    if meanings[0] == meanings[1] == "decimal":
        return as_decimal(Fraction(int.from_bytes(value, "big", signed=True), 10 ** old["scale"]), new)
    if "decimal" in meanings and kinds == ("bytes", "bytes"):
        found = Fraction(int.from_bytes(value, "big", signed=True))
        return value if meanings[1] is None else as_decimal(found / 10 ** new["scale"], new)
    if kinds[0] in INTS and kinds[1] in INTS and (kinds[0] == "int" or kinds[1] == "long"):
        return as_time(old, new, value)
    if kinds[0] in INTS and kinds[1] in {"float", "double"}:
        return as_float(kinds[1], value)
    if kinds[0] == kinds[1]:
        return value
    if kinds == ("float", "double"):
        return value
    if kinds == ("string", "bytes") and meanings[1] is None:
        return value.encode()
    if kinds == ("bytes", "string") and meanings[0] is None:
        try:
            return value.decode()
        except UnicodeDecodeError:
            return REFUSED
    return REFUSED


def as_decimal(exact: Fraction, new: Any) -> Any:
    scaled = exact * 10 ** new["scale"]
    if scaled.denominator != 1 or abs(scaled) >= 10 ** new["precision"]:
        return REFUSED
    return Decimal(scaled.numerator).scaleb(-new["scale"], Context(prec=100))


def as_time(old: Any, new: Any, value: int) -> Any:
    """Numbers without a logical type are what the other type says."""
    one, other = (UNITS.get(meaning_of(each) or "") for each in (old, new))
    if one and other:
        if one[0] != other[0]:
            return REFUSED
        converted = Fraction(value * one[1], other[1])
        if converted.denominator != 1:
            return REFUSED
        value = int(converted)
    return value if -(2**63) <= value < 2**63 else REFUSED


def as_float(kind: str, value: int) -> Any:
    code = "f" if kind == "float" else "d"
    found = struct.unpack(code, struct.pack(code, float(value)))[0]
    return found if Fraction(found) == value else REFUSED


def shown(type_: Any, scalar: Any) -> Any:
    """The value of a column as that of the reader's Avro type."""
    meaning = meaning_of(type_)
    if pa.types.is_timestamp(scalar.type):
        micros = scalar.value
        return micros // 1000 if meaning and meaning.endswith("millis") else micros
    return scalar.value if pa.types.is_date(scalar.type) else scalar.as_py()


AVRO = st.sampled_from(avro_types())


@searched
@given(st.data(), AVRO, AVRO, st.sampled_from(["plain", "nullable", "widened"]))
def test_avro(data: st.DataObject, old: Any, new: Any, wrapping: str) -> None:
    value = data.draw(values_of(old))
    expected = as_avro(old, new, value)
    if expected is not REFUSED and (meaning_of(new) or "").startswith(("timestamp", "local")):
        micros = expected * (1000 if str(meaning_of(new)).endswith("millis") else 1)
        expected = expected if -(2**63) <= micros < 2**63 else REFUSED
    wrapped = {
        "plain": (old, new),
        "nullable": (["null", old], ["null", new]),
        "widened": (old, ["null", new]),
    }[wrapping]
    schemas: list[Any] = [
        {"type": "record", "name": "R", "fields": [{"name": "x", "type": each}, {"name": "y", "type": "int"}]}
        for each in wrapped
    ]
    schemas[1]["fields"].pop()
    note(json.dumps(schemas))
    stream = io.BytesIO()
    bare = json.loads(json.dumps(schemas[0]).replace('"logicalType"', '"meaning"'))
    fastavro.schemaless_writer(stream, fastavro.parse_schema(bare), {"x": value, "y": 1})

    found = outcome(whole("AVRO", schemas[1]), whole("AVRO", schemas[0]), stream.getvalue())

    assert (found if found is REFUSED else shown(new, found)) == expected


# -- Protobuf --------------------------------------------------------------------------------------

BITS = {
    "int32": (31, 1),
    "int64": (63, 1),
    "uint32": (32, 0),
    "uint64": (64, 0),
    "sint32": (31, 1),
    "sint64": (63, 1),
    "fixed32": (32, 0),
    "fixed64": (64, 0),
    "sfixed32": (31, 1),
    "sfixed64": (63, 1),
}
LABELS = ("optional ", "repeated ")
ENCODINGS = (
    "int32 int64 uint32 uint64 bool Kind Closed Few",
    "sint32 sint64",
    "fixed32 sfixed32",
    "fixed64 sfixed64",
    "string bytes",
)
PAIRS = [
    ((one, other), (label, again))
    for encoding in ENCODINGS
    for one in encoding.split()
    for other in encoding.split()
    for label in LABELS
    for again in LABELS
    if label == again or "string" in encoding
]


@lru_cache(maxsize=100)
def proto(type_: str, label: str) -> tuple[ResolvedSchema, Any]:
    schema = whole(
        "PROTOBUF",
        f"""edition = "2023"; message M {{ {label.replace("optional", "")} {type_} x = 1; }}
        enum Kind {{ ZERO = 0; ONE = 1; }}
        enum Closed {{ option features.enum_type = CLOSED; C_ZERO = 0; C_ONE = 1; C_TWO = 2; }}
        enum Few {{ option features.enum_type = CLOSED; F_ZERO = 0; F_ONE = 1; }}""",
    )
    parsed = schema.parsed()
    assert isinstance(parsed, ProtobufSchema)
    return schema, GetMessageClass(parsed.pool.FindMessageTypeByName("M"))


def protobuf_values(type_: str) -> st.SearchStrategy[Any]:
    if type_ in BITS:
        bits, signed = BITS[type_]
        low, high = -(2**bits) * signed, 2**bits - 1
        edges = [edge for edge in (low, high, -1, 0, 1, 2, 2**31, 2**32, 2**32 + 1) if low <= edge <= high]
        return st.sampled_from(edges) | st.integers(low, high)
    return {
        "bool": st.booleans(),
        "string": st.text(max_size=3),
        "bytes": st.binary(max_size=3),
        "Kind": st.integers(-(2**31), 2**31 - 1) | st.sampled_from([0, 1]),
        "Closed": st.sampled_from([0, 1, 2]),
        "Few": st.sampled_from([0, 1]),
    }[type_]


WIDER = {
    "bool": "int32 int64 uint32 uint64",
    "Kind": "int32 int64",
    "int32": "int64",
    "uint32": "int64 uint64",
    "sint32": "sint64",
    "string": "bytes",
}
NAMES = {"Kind": ["ZERO", "ONE"], "Closed": ["C_ZERO", "C_ONE", "C_TWO"], "Few": ["F_ZERO", "F_ONE"]}


def as_column(type_: str, value: Any) -> Any:
    """The column's value for a value of the reader's type; REFUSED if the type does not have it."""
    if type_ in BITS:
        bits, signed = BITS[type_]
        return int(value) if -(2**bits) * signed <= value < 2**bits else REFUSED
    if type_ in NAMES:
        known = value in range(len(NAMES[type_]))
        if not known and (type_ != "Kind" or not -(2**31) <= value < 2**31):
            return REFUSED
        return NAMES[type_][value] if known else str(int(value))
    if type_ == "bool":
        return bool(value) if value in {0, 1} else REFUSED
    if type_ == "bytes":
        return value.encode() if isinstance(value, str) else value
    try:
        return value.decode() if isinstance(value, bytes) else value
    except UnicodeDecodeError:
        return REFUSED


@searched
@given(st.data(), st.sampled_from(PAIRS))
def test_protobuf(data: st.DataObject, pair: tuple[tuple[str, str], tuple[str, str]]) -> None:
    types, labels = pair
    (writer, kind), (reader, _) = (proto(type_, label) for type_, label in zip(types, labels, strict=True))
    parsed = [each.parsed() for each in (reader, writer)]
    assert isinstance(parsed[0], ProtobufSchema)
    assert isinstance(parsed[1], ProtobufSchema)
    assert not parsed[0].differences(parsed[1])
    values = data.draw(st.lists(protobuf_values(types[0]), max_size=1 if labels[0] == "optional " else 3))
    note(f"{types} {labels} {values}")
    message = kind()
    if labels[0] == "repeated ":
        message.x.extend(values)
    elif values:
        message.x = values[0]

    found = outcome(reader, writer, b"\0" + message.SerializeToString())

    expected: Any = [as_column(types[1], value) for value in values]
    if found is REFUSED:
        # All records of a schema are refused if the reader's field cannot hold every value of the writer's.
        is_wide_enough = types[0] == types[1] or types[1] in WIDER.get(types[0], "").split()
        assert REFUSED in expected or not is_wide_enough or labels == ("repeated ", "optional ")
    else:
        if labels[1] == "optional ":
            assert len(expected) <= 1
            expected = expected[0] if expected else None
        assert found.as_py() == expected


# -- JSON ------------------------------------------------------------------------------------------

DIGITS = st.text("0123456789", min_size=1, max_size=22)


@st.composite
def numbers(draw: st.DrawFn) -> str:
    """Numbers as people write them: short and long, with a point and an exponent, or those of floats."""
    if draw(st.booleans()):
        edges = (2**53, 2**53 + 1, 2**60, 2**63 - 1, 2**63, 10**17 + 1, 19.99, 0.1 + 0.2, 1e300, 5e-324)
        return repr(draw(st.sampled_from(edges) | st.floats(allow_nan=False, allow_infinity=False)))
    whole_part = str(int(draw(DIGITS)))
    fraction = f".{draw(DIGITS)}" if draw(st.booleans()) else ""
    exponent = f"e{draw(st.integers(-400, 400))}" if draw(st.integers(0, 3)) == 0 else ""
    return draw(st.sampled_from(["", "-"])) + whole_part + fraction + exponent


def is_exactly(found: float, text: str) -> bool:
    """Whether a float that is rounded to as many digits as the text has is the number of the text."""
    exact = Decimal(text)
    if not math.isfinite(found):
        return False
    if Decimal(found) == exact or not found:
        return Decimal(found) == exact
    last_digit = Fraction(10) ** int(Context(prec=100).normalize(exact).as_tuple().exponent)
    return not text.lstrip("-").isdigit() and abs(Fraction(found) - Fraction(text)) * 2 <= last_digit


def schema_of(type_: str) -> ResolvedSchema:
    return whole("JSON", {"type": "object", "properties": {"x": {"type": type_}}})


@searched
@given(numbers())
@example("19.99")
@example("1e400")
@example("9007199254740993")
@example("0.10000000000000001")
@example("0.1000000000000000001")
@example("4503599627370496.3")
@example("5.960464477539063E-8")
@example("100000000000000190e0")
def test_numbers_of_json(text: str) -> None:
    exact, payload, writer = Decimal(text), f'{{"x": {text}}}'.encode(), schema_of("number")

    double = outcome(schema_of("number"), writer, payload)
    integer = outcome(schema_of("integer"), writer, payload)
    anything = outcome(whole("JSON", {"properties": {"x": True}}), writer, payload)

    if double is REFUSED:
        is_other_integer = exact == exact.to_integral_value() and Decimal(float(text)) != exact
        assert is_other_integer or not is_exactly(float(text), text)
    else:
        assert is_exactly(double.as_py(), text)
    fits = (not exact or exact.adjusted() < 30) and exact == int(exact) and -(2**63) <= exact < 2**63
    assert (integer if integer is REFUSED else integer.as_py()) == (int(exact) if fits else REFUSED)
    if anything is not REFUSED and not text.lstrip("-").isdigit():
        assert is_exactly(float(anything.as_py()), text)


@searched
@given(numbers(), st.sampled_from([(9, 2), (20, 0), (38, 18)]))
def test_decimals_of_json(text: str, of: tuple[int, int]) -> None:
    precision, scale = of
    shape, decode = json_columns(pa.struct([("x", pa.decimal128(precision, scale)), ("y", pa.float32())]))
    rows = decode_rows(columns_of(shape), decode, [f'{{"x": {text}}}'.encode(), f'{{"y": {text}}}'.encode()])
    decimal, single = (rows.field("row").field(name) for name in "xy")

    expected = as_decimal(Fraction(text), {"precision": precision, "scale": scale})
    assert decimal[0].as_py() == (None if expected is REFUSED else expected)
    assert (rows.field("reason")[0].as_py() is None) == (expected is not REFUSED)
    if rows.field("reason")[1].as_py() is None:
        found = single[1].as_py()
        assert struct.unpack("f", struct.pack("f", found))[0] == found
        wide = repr(float(text))
        assert is_exactly(found, wide) or Decimal(found) == Decimal(text)


@searched
@given(st.integers(-(10**15), 10**15), st.text("0123456789", max_size=5))
def test_times_of_json(micros: int, finer: str) -> None:
    at = (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=None)
    text = f"{at.isoformat(timespec='microseconds')}{finer}Z"
    schema = whole("JSON", {"type": "object", "properties": {"x": {"type": "string", "format": "date-time"}}})
    found = outcome(schema, schema, json.dumps({"x": text}).encode())

    assert (found if found is REFUSED else found.value) == (REFUSED if finer.strip("0") else micros)


def test_a_date_is_not_a_time() -> None:
    shape, decode = json_columns(pa.struct([("x", pa.date32())]))
    rows = decode_rows(columns_of(shape), decode, [b'{"x": "2026-01-01T12:00:00"}', b'{"x": "2026-01-01"}'])
    assert rows.field("row").field("x").to_pylist() == [None, date(2026, 1, 1)]
