"""Whether a default, in Avro's JSON encoding, is a value of its field's type."""

from typing import Any

from headrace.registry.formats.avro_types import NO_DEFAULT, AvroType

_RANGES = {"int": 2**31, "long": 2**63}


def fits(value: Any, of: AvroType) -> bool:
    """Return whether `value` is valid: for any branch of a union, and without fields that have defaults."""
    return _Check().fits(value, of)


class _Check:
    """Checks every pair of value and record once: unions of records in unions would take 2^n checks."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], bool] = {}

    def fits(self, value: Any, of: AvroType) -> bool:
        match of.kind:
            case "array":
                return isinstance(value, list) and all(self.fits(item, of.inner) for item in value)
            case "map":
                return isinstance(value, dict) and all(self.fits(item, of.inner) for item in value.values())
            case "union":
                return any(self.fits(value, branch) for branch in of.branches)
            case "record" | "error":
                return isinstance(value, dict) and self._is_record(value, of)
        return _is_simple(value, of)

    def _is_record(self, value: dict[str, Any], of: AvroType) -> bool:
        """Return whether fields of a record fit. Defaults of missing fields are checked with those fields."""
        key = id(value), id(of)
        if key not in self._known:
            self._known[key] = all(
                self.fits(value[field.name], field.type)
                if field.name in value
                else field.default is not NO_DEFAULT
                for field in of.fields
            )
        return self._known[key]


def _is_simple(value: Any, of: AvroType) -> bool:
    match of.kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            limit = _RANGES[of.kind]
            return isinstance(value, int) and not isinstance(value, bool) and -limit <= value < limit
        case "float" | "double":
            return _is_float(value)
        case "string":
            return isinstance(value, str)
        case "bytes":
            return _is_bytes(value)
        case "fixed":
            return _is_bytes(value) and len(value) == of.size
    return value in of.symbols


def _is_bytes(value: Any) -> bool:
    """Return whether each character is the code of a byte."""
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _is_float(value: Any) -> bool:
    if isinstance(value, str):  # NaN and infinities, which JSON has no numbers for
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)
