"""Arrays in JSON schemas: leading items with schemas of their own, and the other items."""

from dataclasses import dataclass

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json.bounds import Compare, limit, others
from headrace.registry.formats.json.keywords import Draft, Node
from headrace.registry.formats.json.messages import differs
from headrace.registry.formats.json.shapes import Shape, Shapes


@dataclass(frozen=True)
class Array:
    """The keywords of an array in one form for all drafts."""

    shape: Shape

    @property
    def leading(self) -> list[Node]:
        """The schemas of the first items, one each."""
        listed = self.shape.keywords.get("prefixItems" if self.shape.draft >= Draft.D2020 else "items")
        return listed if isinstance(listed, list) else []

    @property
    def rest(self) -> tuple[Node, str]:
        """The schema of all other items, and its keyword."""
        keywords = self.shape.keywords
        if isinstance(keywords.get("items"), dict | bool):
            return keywords["items"], "items"
        if isinstance(keywords.get("items"), list) and "additionalItems" in keywords:
            return keywords["additionalItems"], "additionalItems"
        return keywords.get("unevaluatedItems", True), "unevaluatedItems"

    def at(self, index: int) -> Node:
        return self.leading[index] if index < len(self.leading) else self.rest[0]


def arrays(new: Shape, old: Shape, path: str, shapes: Shapes, compare: Compare) -> Differences:
    """Return what the new schema rejects that the old one accepts."""
    after, before = Array(new), Array(old)
    found = _leading(after, before, join(path, "items"), shapes, compare)
    found += _rest(after, before, path, shapes, compare)
    found += limit(new, old, "maxItems", path) + limit(new, old, "minItems", path)
    if new.keywords.get("uniqueItems") and not old.keywords.get("uniqueItems"):
        found += differs("UNIQUE_ITEMS_ADDED", join(path, "uniqueItems"))
    return found + _contains(new, old, path, compare)


def _leading(new: Array, old: Array, path: str, shapes: Shapes, compare: Compare) -> Differences:
    found: Differences = []
    for index in range(max(len(new.leading), len(old.leading))):
        here, after, before = join(path, index), new.at(index), old.at(index)
        incompatible = compare(after, before, here)
        if index < min(len(new.leading), len(old.leading)):
            found += incompatible
        elif incompatible and index < len(old.leading):
            kind = "FROM_CLOSED" if shapes.is_kind(after, "false") else "NOT_COVERED_BY_PARTIALLY_OPEN"
            found += differs(f"ITEM_REMOVED_{kind}_CONTENT_MODEL", here)
        elif incompatible:
            kind = "TO_OPEN" if shapes.is_kind(before, "empty") else "NOT_COVERED_BY_PARTIALLY_OPEN"
            found += differs(f"ITEM_ADDED_{kind}_CONTENT_MODEL", here)
    return found


def _rest(new: Array, old: Array, path: str, shapes: Shapes, compare: Compare) -> Differences:
    (after, keyword), (before, _) = new.rest, old.rest
    here = join(path, keyword)
    if keyword != "items" or new.leading:
        kind = "UNEVALUATED_ITEMS" if keyword == "unevaluatedItems" else "ADDITIONAL_ITEMS"
        return others(kind, after, before, here, shapes, compare)
    if shapes.is_kind(before, "false") or shapes.is_kind(after, "empty"):
        return []
    return differs("SCHEMA_ADDED", here) if shapes.is_kind(before, "empty") else compare(after, before, here)


def _contains(new: Shape, old: Shape, path: str, compare: Compare) -> Differences:
    """Compare how many items have to match, by default one, and how many may match."""
    after, before = new.keywords, old.keywords
    here = join(path, "contains")
    if "contains" not in after:
        return []
    if "contains" not in before:
        return differs("CONTAINS_ADDED", here)
    found = [] if after.get("minContains") == 0 else compare(after["contains"], before["contains"], here)
    if "maxContains" in after and compare(before["contains"], after["contains"], here):
        found += differs("CONTAINS_CHANGED", here)
    if after.get("minContains", 1) > before.get("minContains", 1):
        kind = "MIN_CONTAINS_INCREASED" if "minContains" in before else "MIN_CONTAINS_ADDED"
        found += differs(kind, join(path, "minContains"))
    return found + limit(new, old, "maxContains", path)
