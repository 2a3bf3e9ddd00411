"""Limits in JSON schemas: of numbers, lengths and sizes, and of items and properties that are not listed."""

import re
from collections.abc import Callable
from fractions import Fraction
from operator import ge, gt, le, lt
from typing import Any

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json.keywords import Node
from headrace.registry.formats.json.messages import differs
from headrace.registry.formats.json.shapes import Shape, Shapes

Compare = Callable[[Node, Node, str], Differences]  # the new schema, the old one, the path


def strings(new: Shape, old: Shape, path: str) -> Differences:
    """Compare strings: the range of lengths may widen, a pattern may be removed."""
    found = limit(new, old, "maxLength", path) + limit(new, old, "minLength", path)
    pattern = new.keywords.get("pattern")
    if pattern is None or pattern == old.keywords.get("pattern"):
        return found
    kind = "PATTERN_CHANGED" if "pattern" in old.keywords else "PATTERN_ADDED"
    return found + differs(kind, join(path, "pattern"))


def numbers(new: Shape, old: Shape, path: str) -> Differences:
    """Compare numbers: limits may widen, integers become numbers, `multipleOf` become a divisor."""
    found: Differences = []
    for plain, exclusive, within, strictly in (
        ("maximum", "exclusiveMaximum", le, lt),
        ("minimum", "exclusiveMinimum", ge, gt),
    ):
        # A value below 3 is also at most 3, and a value of at most 2 is also below 3.
        if not _holds(within, old.keywords.get(exclusive), new.keywords.get(plain)):
            found += limit(new, old, plain, path)
        if not _holds(strictly, old.keywords.get(plain), new.keywords.get(exclusive)):
            found += limit(new, old, exclusive, path)
    found += _multiples(new, old, join(path, "multipleOf"))
    return found + (differs("TYPE_NARROWED", path) if new.integer and not old.integer else [])


def limit(new: Shape, old: Shape, keyword: str, path: str) -> Differences:
    """Compare a maximum, which may increase or be removed, or a minimum, which may decrease."""
    after, before = new.keywords.get(keyword), old.keywords.get(keyword)
    is_maximum = "max" in keyword.lower()
    if after is None or _holds(le if is_maximum else ge, before, after):
        return []
    change = "ADDED" if before is None else "DECREASED" if is_maximum else "INCREASED"
    name = re.sub(r"(?=[A-Z])", "_", keyword).upper()  # maxItems: MAX_ITEMS
    return differs(f"{name}_{change}", join(path, keyword))


def others(  # noqa: PLR0917
    kind: str, after: Node, before: Node, path: str, shapes: Shapes, compare: Compare
) -> Differences:
    """Compare the schemas of those items or properties that have no schema of their own."""
    if shapes.is_kind(before, "false") or shapes.is_kind(after, "empty"):
        return []
    if shapes.is_kind(after, "false"):
        return differs(f"{kind}_REMOVED", path)
    if shapes.is_kind(before, "empty"):
        return differs(f"{kind}_NARROWED", path)
    return compare(after, before, path)


def _holds(compare: Callable[[Any, Any], Any], one: Any, other: Any) -> bool:
    return one is not None and other is not None and bool(compare(one, other))


def _multiples(new: Shape, old: Shape, path: str) -> Differences:
    if "multipleOf" not in new.keywords:
        return []
    if "multipleOf" not in old.keywords:
        return differs("MULTIPLE_OF_ADDED", path)
    after, before = (Fraction(str(shape.keywords["multipleOf"])) for shape in (new, old))
    if before % after == 0:
        return []
    return differs("MULTIPLE_OF_EXPANDED" if after % before == 0 else "MULTIPLE_OF_CHANGED", path)
