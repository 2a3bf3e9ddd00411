"""Messages of any class and version: random, or with everything filled in."""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from headrace.protocol.api import decode_request, encode_response, request_class
from headrace.protocol.compiled.structs import StructType, default_of, struct_named
from headrace.protocol.fields import Field
from headrace.protocol.schema.error_codes import ErrorCode
from oracles.schemas import Case

INTEGERS: Final = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
}
SIMPLE: Final[dict[str, st.SearchStrategy[Any]]] = {
    "bool": st.booleans(),
    "float64": st.floats(allow_nan=False, allow_infinity=False),
    "string": st.text(max_size=6),
    "bytes": st.binary(max_size=6),
    "records": st.binary(max_size=6),
    "uuid": st.binary(min_size=16, max_size=16),
}


UNUSUAL: Final = {"error_message", "record_errors", "forgotten_topics_data", "aborted_transactions"}


def assert_written_and_read_as(case: Case, message: Any, expected: bytes) -> None:
    """Check that our codecs, also those by hand, write `message` as `expected`, and read that."""
    body = memoryview(bytearray(expected))
    assert b"".join(message.encode(case.version)) == expected
    assert case.cls.decode(body, case.version) == message
    key = case.cls.__api_key__
    if key is not None and case.cls is request_class(key):  # by hand, where there is a codec by hand
        assert decode_request(key, case.version, body) == message
    elif key is not None:
        assert b"".join(encode_response(key, case.version, message)) == expected


def messages(cls: StructType, version: int, *, plain: bool = False) -> st.SearchStrategy[Any]:
    """Random messages with a value in every field that the version has.

    Plain ones leave at its default what usually is: tagged fields, and what goes with errors.
    """
    values, absent = {}, {}
    for field in cls.__fields__:
        left_alone = plain and (field.tag is not None or field.name in UNUSUAL)
        if field.exists_in(version) and not left_alone:
            values[field.name] = _values(field, cls, version, plain=plain)
        else:
            absent[field.name] = default_of(field, cls)
    make: Callable[..., Any] = cls
    return st.fixed_dictionaries(values).map(lambda chosen: make(**chosen, **absent))


def _values(field: Field, cls: StructType, version: int, *, plain: bool) -> st.SearchStrategy[Any]:
    if field.holds_structs:
        value = messages(struct_named(field.item_kind, cls), version, plain=plain)
    elif field.item_kind in INTEGERS:
        value = st.integers(*_bounds(field))
    else:
        value = SIMPLE[field.item_kind]
    if field.is_array:
        value = st.lists(value, max_size=3)
    if field.nullable_in(version):
        value = st.none() | value
    return value | st.just(default_of(field, cls)) if field.tag is not None else value


def _bounds(field: Field) -> tuple[int, int]:
    """What both sides can express: kio has an enum for errors, and dates for some of the times."""
    if field.name.endswith("error_code"):
        return min(ErrorCode), ErrorCode.SHARE_SESSION_LIMIT_REACHED
    if field.name.endswith("_ms") and field.kind == "int64":
        return 0, 2**40
    return INTEGERS[field.item_kind]


def filled(cls: StructType, version: int, times: int = 60) -> Any:
    """Something in every field; by default, enough of it for lengths of two bytes."""
    make: Callable[..., Any] = cls
    values = {
        field.name: _filling(field, cls, version, times)
        if field.exists_in(version)
        else default_of(field, cls)
        for field in cls.__fields__
    }
    return make(**values)


def _filling(field: Field, cls: StructType, version: int, times: int) -> Any:
    if field.holds_structs:
        value = filled(struct_named(field.item_kind, cls), version, times)
        return [value] * 2 if field.is_array else value
    if field.item_kind in INTEGERS:
        value = 42 if field.name.endswith("error_code") else _bounds(field)[1]
        return [value] * (3 * times) if field.is_array else value
    value = FILLINGS[field.item_kind]
    if field.item_kind in {"string", "bytes", "records"}:
        value *= times
    return [value] * 3 if field.is_array else value


FILLINGS: Final[dict[str, Any]] = {
    "bool": True,
    "float64": 0.1,
    "string": "µs→",
    "bytes": b"\x00\x80\xff",
    "records": b"\x00\x80\xff" * 100,
    "uuid": bytes(range(16)),
}
