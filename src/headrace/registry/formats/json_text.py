"""JSON in and out: bounded when read, compact and always the same when written."""

import json
import math
import re
from typing import Any, NoReturn

from headrace.registry.formats.limits import MAX_DEPTH
from headrace.registry.formats.schema import InvalidSchema

_STRUCTURE = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def load(text: str) -> Any:
    """The value that `text` is; `InvalidSchema` if it is none, or one we would not dare to walk."""
    if (depth := nesting(text)) > MAX_DEPTH:
        raise InvalidSchema(f"The schema is nested {depth} levels deep; {MAX_DEPTH} are allowed.")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        dump(value).encode()
    except UnicodeEncodeError as error:
        raise InvalidSchema(
            "The schema holds half a character: a surrogate without its other half."
        ) from error
    except ValueError as error:
        raise InvalidSchema(f"The schema is not JSON: {error}.") from error
    return value


def dump(value: Any, *, sort_keys: bool = False) -> str:
    """`value` as JSON without a space that is not in a string."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=sort_keys)


def nesting(text: str) -> int:
    """How many brackets are open at once, at most; strings are passed over. Does not mind what is no JSON."""
    deepest = depth = 0
    for token in _STRUCTURE.finditer(text):
        match token[0]:
            case "[" | "{":
                depth += 1
                deepest = max(deepest, depth)
            case "]" | "}":
                depth -= 1
    return deepest


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number in JSON")


def _finite(digits: str) -> float:
    if math.isfinite(number := float(digits)):
        return number
    raise ValueError(f"{digits[:40]} is too large a number")
