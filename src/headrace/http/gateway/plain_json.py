"""JSON as everybody else reads it: no NaN, no numbers without end, and nested within reason."""

import json
import math
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from fastapi import Response

MAX_DEPTH: Final = 200  # of what is taken apart and put together again


class NotJson(ValueError):
    """The text is no JSON, or none that can be handed on."""


def read_json(text: str | bytes) -> Any:
    """What the text says; NotJson if that is not JSON."""
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
    """The bytes of a record: in UTF-8, as other producers write them, so that equal keys are equal.

    NotJson also for what could not be read again.
    """
    if is_deep(value):
        raise NotJson(f"it is nested more than {MAX_DEPTH} deep")
    try:
        return _dumped(value, ensure_ascii=False)
    except UnicodeEncodeError:
        return write_json(value)


def write_json(value: Any) -> bytes:
    """The value as compact JSON in ASCII: half a surrogate pair, for which UTF-8 has no bytes, is escaped."""
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


def json_answer(value: Any, status: int = HTTPStatus.OK, media_type: str = "application/json") -> "Response":
    """An answer that holds whatever was in somebody's records."""
    from fastapi import Response  # noqa: PLC0415  the codecs' processes need JSON, and nothing of HTTP

    return Response(write_json(value), status, media_type=media_type)


def is_deep(value: Any) -> bool:
    """Whether it is nested more than `MAX_DEPTH` deep; asked without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for each in level for inner in _inside(each)]
        if not level:
            return False
    return True


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [each for each in value.values() if isinstance(each, dict | list)]
    if isinstance(value, list):
        return [each for each in value if isinstance(each, dict | list)]
    return []


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"{text} is no number in JSON")
    return number
