"""JSON that every parser can read: no NaN, no infinite numbers, and no deep nesting."""

import json
import math
from typing import Any, Final

MAX_DEPTH: Final = 200  # of nested objects and lists


class NotJson(ValueError):
    """The text is not JSON, or JSON that other parsers refuse."""


def read_json(text: str | bytes) -> Any:
    """Return the value of JSON text; raise NotJson if it is not JSON."""
    try:
        value = json.loads(text, parse_float=_finite, parse_constant=_finite)
    except NotJson:
        raise
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    if is_deep(value):
        raise NotJson(f"it is nested more than {MAX_DEPTH} deep")
    return value


def store_json(value: Any) -> bytes:
    """Return the value as compact JSON in UTF-8, as other producers write it, so that equal keys are equal.

    Raise NotJson for what `read_json` would refuse.
    """
    if is_deep(value):
        raise NotJson(f"it is nested more than {MAX_DEPTH} deep")
    try:
        return _dumped(value, ensure_ascii=False)
    except UnicodeEncodeError:
        return write_json(value)


def write_json(value: Any) -> bytes:
    """Return the value as compact JSON in ASCII, with lone surrogates escaped, which UTF-8 cannot encode."""
    return _dumped(value, ensure_ascii=True)


def _dumped(value: Any, *, ensure_ascii: bool) -> bytes:
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False, ensure_ascii=ensure_ascii).encode()
    except UnicodeEncodeError:
        raise
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None


def is_deep(value: Any) -> bool:
    """Return whether the value is nested more than MAX_DEPTH deep, without recursion."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_DEPTH):
        parts = (node.values() if isinstance(node, dict) else node for node in level)
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
        if not level:
            return False
    return True


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"{text} is not a number in JSON")
    return number
