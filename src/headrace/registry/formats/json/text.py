"""JSON of schemas: parsed with limits, written compactly and always the same way."""

import json
import math
import re
from typing import Any, NoReturn

from headrace.registry.formats.limits import MAX_DEPTH
from headrace.registry.formats.schema import InvalidSchema

_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def load(text: str) -> Any:
    """Return the value of a JSON text; `InvalidSchema` if it is malformed or nested too deeply."""
    if (depth := nesting(text)) > MAX_DEPTH:
        raise InvalidSchema(f"The schema is nested {depth} levels deep; {MAX_DEPTH} are allowed.")
    try:
        value = json.loads(text, parse_constant=refuse_constant, parse_float=_finite)
        dump(value).encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema(
            "The schema contains half a surrogate pair, which UTF-8 cannot encode."
        ) from error
    except ValueError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}.") from error
    return value


def dump(value: Any, *, sort_keys: bool = False) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def nesting(text: str) -> int:
    """Return the largest number of brackets that are open at once, outside of strings. Accepts any text."""
    deepest = depth = 0
    for token in _STRUCTURE.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                deepest = max(deepest, depth)
            case "]" | "}":
                depth -= 1
    return deepest


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN and Infinity, which Python accepts and JSON does not have."""
    raise ValueError(f"{name} is not a number in JSON")


def _finite(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise ValueError(f"{digits[:40]} is too large a number")
