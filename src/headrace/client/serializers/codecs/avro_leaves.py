"""Avro values that have no parts, as plain JSON, and back; and the JSON types of Avro types. Pure."""

import base64
import binascii
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from uuid import UUID

NOT_FINITE: Final = {"nan", "inf", "-inf"}
_EXACT: Final = 15  # decimal digits that a float keeps
_MAX_ZERO_EXPONENT: Final = 10_000  # 0e99999999 would be written with as many digits
RANGES: Final = {"int": range(-(2**31), 2**31), "long": range(-(2**63), 2**63)}
_JSON_TYPES: Final = {
    **dict.fromkeys(("int", "long", "float", "double"), "number"),
    **dict.fromkeys(("string", "bytes", "fixed", "enum"), "string"),
    **dict.fromkeys(("record", "error", "map"), "object"),
}
_LOGICAL: Final = frozenset(
    {
        *(("long", f"{local}timestamp-{unit}") for local in ("", "local-") for unit in ("millis", "micros")),
        *(("int", "date"), ("int", "time-millis"), ("long", "time-micros")),
        *(("bytes", "decimal"), ("fixed", "decimal"), ("string", "uuid")),
    }
)
"""The logical types that fastavro converts."""


class Misfit(ValueError):
    """A value does not fit; the message names the field."""

    def __init__(self, path: str, why: str, *, is_missing: bool = False) -> None:
        super().__init__(f"{f'the field {path}' if path else 'the value'} {why}")
        self.is_missing = is_missing


def shown_type(kind: Mapping[str, Any]) -> str:
    return "string" if logical_type(kind) else _JSON_TYPES.get(kind["type"], kind["type"])


def logical_type(kind: Mapping[str, Any]) -> str:
    """Return the logical type that fastavro converts, or an empty string."""
    name = kind.get("logicalType")
    return str(name) if (kind["type"], name) in _LOGICAL else ""


def json_type_of(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
    return "object" if isinstance(value, dict) else "array"


def show_leaf(value: Any) -> Any:
    """Return a value of fastavro that has no parts as JSON."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value) if isinstance(value, UUID) else value


def read_leaf(value: Any, kind: Mapping[str, Any], path: str) -> Any:
    """Return JSON as a value of an Avro type that has no parts; Misfit if it is none."""
    logical, name = logical_type(kind), kind["type"]
    if logical == "decimal" and json_type_of(value) in {"string", "number"}:
        if isinstance(value, float) and Decimal(str(value)).adjusted() + kind.get("scale", 0) >= _EXACT:
            raise Misfit(path, f"is {value}, which may have lost digits: write such decimals as strings")
        return _read_decimal(str(value), kind, path)
    if logical and isinstance(value, str):
        return _read_logical(value, logical, path)
    if name in {"float", "double"} and isinstance(value, str) and value in NOT_FINITE:
        return float(value)
    check_leaf(value, kind, path)
    return _read_bytes(value, kind.get("size"), path) if name in {"bytes", "fixed"} else value


def check_leaf(value: Any, kind: Mapping[str, Any], path: str) -> Any:
    """Return a value of Avro's own JSON encoding, in which bytes are text; Misfit if it is not one."""
    name = kind["type"]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match name:
        case "null":
            fits = value is None
        case "boolean":
            fits = isinstance(value, bool)
        case "int" | "long":
            fits = is_number and isinstance(value, int)
        case "float" | "double":
            fits = is_number
        case _:
            fits = isinstance(value, str)
    check(fits, value, logical_type(kind) or name, path)
    if name in RANGES and value not in RANGES[name]:
        raise Misfit(path, f"is {value}, which is outside of {name}")
    if name == "enum" and value not in kind["symbols"]:
        raise Misfit(path, f"is {value[:80]!r}, expected one of {', '.join(kind['symbols'][:20])}")
    return value


def _read_bytes(text: str, size: int | None, path: str) -> bytes:
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Misfit(path, f"is {text[:80]!r}, expected bytes in base64") from None
    if size is not None and len(found) != size:
        raise Misfit(path, f"has {len(found)} bytes, expected {size}")
    return found


def _read_decimal(text: str, kind: Mapping[str, Any], path: str) -> Decimal:
    precision, scale = kind["precision"], kind.get("scale", 0)
    try:
        found = Decimal(text)
    except InvalidOperation:
        found = Decimal("nan")
    if (
        not found.is_finite()
        or -int(found.as_tuple().exponent) > scale
        or found.adjusted() >= (precision - scale if found else _MAX_ZERO_EXPONENT)
    ):
        raise Misfit(
            path,
            f"is {text[:80]!r}, expected a decimal number with {precision} digits, {scale} of them after the "
            "point",
        )
    return found


def _read_logical(text: str, logical: str, path: str) -> Any:
    try:
        match logical:
            case "uuid":
                return UUID(text)
            case "date":
                return date.fromisoformat(text)
        found: datetime | time = (
            time.fromisoformat(text) if logical.startswith("time-") else datetime.fromisoformat(text)
        )
    except ValueError:
        raise Misfit(path, f"is {text[:80]!r}, expected {logical}") from None
    if (found.tzinfo is None) == logical.startswith("timestamp"):
        zone = "a time zone, as in 2026-01-31T12:00:00Z" if found.tzinfo is None else "no time zone"
        raise Misfit(path, f"is {text[:80]!r}, expected {logical} with {zone}")
    return found


def check(fits: bool, value: Any, expected: str, path: str) -> None:
    if not fits:
        raise Misfit(path, f"is {kind_of(value)}, expected {expected}")


def kind_of(value: Any) -> str:
    """Return a JSON value's type in words, for a sentence."""
    kinds = {"null": "null", "object": "an object", "array": "a list"}
    json_type = json_type_of(value)
    return kinds.get(json_type, f"a {json_type}")
