"""Limits in JSON schemas: what a number may be, how long a string, how many items."""

from fractions import Fraction
from typing import Any

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json_messages import differs
from headrace.registry.formats.json_shapes import Shape


def strings(new: Shape, old: Shape, path: str) -> Differences:
    """Lengths may grow apart, a pattern may go."""
    found = upper(new, old, "maxLength", "MAX_LENGTH", path) + lower(
        new, old, "minLength", "MIN_LENGTH", path
    )
    pattern = new.keywords.get("pattern")
    if pattern is None or pattern == old.keywords.get("pattern"):
        return found
    return found + differs(
        "PATTERN_CHANGED" if "pattern" in old.keywords else "PATTERN_ADDED", join(path, "pattern")
    )


def numbers(new: Shape, old: Shape, path: str) -> Differences:
    """Limits may grow apart, integers become numbers, multiples be of a divisor."""
    new, old = _with_limits(new), _with_limits(old)
    found = _most(new, old, path) + _least(new, old, path) + _multiples(new, old, join(path, "multipleOf"))
    return found + (differs("TYPE_NARROWED", path) if new.integer and not old.integer else [])


def _most(new: Shape, old: Shape, path: str) -> Differences:
    """What was below 3 is also 3 at most: an exclusive limit keeps within the same one that is not."""
    below, most = old.keywords.get("exclusiveMaximum"), old.keywords.get("maximum")
    after, at_most = new.keywords.get("exclusiveMaximum"), new.keywords.get("maximum")
    found: Differences = []
    if not _within(below, at_most):
        found += upper(new, old, "maximum", "MAXIMUM", path)
    if after is None or most is None or most >= after:
        found += upper(new, old, "exclusiveMaximum", "EXCLUSIVE_MAXIMUM", path)
    return found


def _least(new: Shape, old: Shape, path: str) -> Differences:
    """The same from below."""
    above, least = old.keywords.get("exclusiveMinimum"), old.keywords.get("minimum")
    after, at_least = new.keywords.get("exclusiveMinimum"), new.keywords.get("minimum")
    found: Differences = []
    if not _within(at_least, above):
        found += lower(new, old, "minimum", "MINIMUM", path)
    if after is None or least is None or least <= after:
        found += lower(new, old, "exclusiveMinimum", "EXCLUSIVE_MINIMUM", path)
    return found


def _within(less: Any, more: Any) -> bool:
    return less is not None and more is not None and less <= more


def upper(new: Shape, old: Shape, keyword: str, kind: str, path: str) -> Differences:
    """A limit from above, which may rise or go."""
    after, before = new.keywords.get(keyword), old.keywords.get(keyword)
    if after is None or (before is not None and after >= before):
        return []
    return differs(f"{kind}_ADDED" if before is None else f"{kind}_DECREASED", join(path, keyword))


def lower(new: Shape, old: Shape, keyword: str, kind: str, path: str) -> Differences:
    """A limit from below, which may sink or go."""
    after, before = new.keywords.get(keyword), old.keywords.get(keyword)
    if after is None or (before is not None and after <= before):
        return []
    return differs(f"{kind}_ADDED" if before is None else f"{kind}_INCREASED", join(path, keyword))


def _with_limits(shape: Shape) -> Shape:
    """In draft 4 "exclusiveMaximum" is true or false, and about "maximum"."""
    keywords: dict[str, Any] = dict(shape.keywords)
    for exclusive, limit in (("exclusiveMaximum", "maximum"), ("exclusiveMinimum", "minimum")):
        if isinstance(keywords.get(exclusive), bool) and keywords.pop(exclusive):
            keywords[exclusive] = keywords.pop(limit)
    return Shape(shape.kind, keywords, shape.draft, shape.strict, shape.integer)


def _multiples(new: Shape, old: Shape, path: str) -> Differences:
    if "multipleOf" not in new.keywords:
        return []
    if "multipleOf" not in old.keywords:
        return differs("MULTIPLE_OF_ADDED", path)
    after, before = (Fraction(str(shape.keywords["multipleOf"])) for shape in (new, old))
    if before % after == 0:
        return []
    return differs("MULTIPLE_OF_EXPANDED" if after % before == 0 else "MULTIPLE_OF_CHANGED", path)
