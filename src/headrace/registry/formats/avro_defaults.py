"""Whether a default is a value of its field's type, in the JSON that Avro writes defaults in."""

from typing import Any

from headrace.registry.formats.avro_types import NOTHING, AvroType

_RANGES = {"int": 2**31, "long": 2**63}


def fits(value: Any, of: AvroType) -> bool:
    """A union's default may be of any of its branches; a record's may leave out fields that have defaults."""
    return _Fitting().fits(value, of)


class _Fitting:
    """Asks once for every part of a value and type: unions in unions of records would ask 2^n times."""

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
        """A default that another default completes is not looked at: it is, or will be, by itself."""
        key = id(value), id(of)
        if key not in self._known:
            self._known[key] = all(
                self.fits(value[field.name], field.type)
                if field.name in value
                else field.default is not NOTHING
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
    """Each character stands for the byte of its number."""
    return isinstance(value, str) and all(ord(character) < 256 for character in value)


def _is_float(value: Any) -> bool:
    if isinstance(value, str):  # "NaN", "-Infinity": JSON has no other way to write them
        try:
            float(value)
        except ValueError:
            return False
        return True
    return isinstance(value, int | float) and not isinstance(value, bool)
