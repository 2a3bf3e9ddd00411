"""Arrays in JSON schemas: items at the beginning that have schemas of their own, and the rest."""

from collections.abc import Callable
from dataclasses import dataclass

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json_bounds import lower, upper
from headrace.registry.formats.json_keywords import Draft, Node
from headrace.registry.formats.json_messages import differs
from headrace.registry.formats.json_shapes import Shape, Shapes

Compare = Callable[[Node, Node, str], Differences]  # the new schema, the old one, where


@dataclass(frozen=True)
class Array:
    """An array's keywords in one form for all drafts."""

    shape: Shape
    shapes: Shapes

    @property
    def first(self) -> list[Node]:
        """The schemas of the first items, one each."""
        listed = self.shape.keywords.get("prefixItems" if self.shape.draft >= Draft.D2020 else "items")
        return listed if isinstance(listed, list) else []

    @property
    def rest(self) -> tuple[Node, str]:
        """The schema of all items after those, and the keyword that has it."""
        keywords = self.shape.keywords
        if isinstance(keywords.get("items"), dict | bool):
            return keywords["items"], "items"
        if isinstance(keywords.get("items"), list) and "additionalItems" in keywords:
            return keywords["additionalItems"], "additionalItems"
        return keywords.get("unevaluatedItems", True), "unevaluatedItems"

    def at(self, index: int) -> Node:
        return self.first[index] if index < len(self.first) else self.rest[0]

    def is_kind(self, node: Node, kind: str) -> bool:
        return self.shapes.of(node).kind == kind


def arrays(new: Array, old: Array, path: str, compare: Compare) -> Differences:
    """What the new schema refuses that the old one took."""
    found = _first(new, old, join(path, "items"), compare) + _rest(new, old, path, compare)
    found += upper(new.shape, old.shape, "maxItems", "MAX_ITEMS", path)
    found += lower(new.shape, old.shape, "minItems", "MIN_ITEMS", path)
    if new.shape.keywords.get("uniqueItems") and not old.shape.keywords.get("uniqueItems"):
        found += differs("UNIQUE_ITEMS_ADDED", join(path, "uniqueItems"))
    return found + _contains(new, old, path, compare)


def _first(new: Array, old: Array, path: str, compare: Compare) -> Differences:
    found: Differences = []
    for index in range(max(len(new.first), len(old.first))):
        here, after, before = join(path, index), new.at(index), old.at(index)
        unfit = compare(after, before, here)
        if index < min(len(new.first), len(old.first)):
            found += unfit
        elif unfit and index < len(old.first):
            kind = "FROM_CLOSED" if new.is_kind(after, "false") else "NOT_COVERED_BY_PARTIALLY_OPEN"
            found += differs(f"ITEM_REMOVED_{kind}_CONTENT_MODEL", here)
        elif unfit:
            kind = "TO_OPEN" if old.is_kind(before, "empty") else "NOT_COVERED_BY_PARTIALLY_OPEN"
            found += differs(f"ITEM_ADDED_{kind}_CONTENT_MODEL", here)
    return found


def _rest(new: Array, old: Array, path: str, compare: Compare) -> Differences:
    (after, keyword), (before, _) = new.rest, old.rest
    here = join(path, keyword)
    if old.is_kind(before, "false") or new.is_kind(after, "empty"):
        return []
    if keyword == "items" and not new.first:
        return differs("SCHEMA_ADDED", here) if old.is_kind(before, "empty") else compare(after, before, here)
    kind = "UNEVALUATED_ITEMS" if keyword == "unevaluatedItems" else "ADDITIONAL_ITEMS"
    if new.is_kind(after, "false"):
        return differs(f"{kind}_REMOVED", here)
    if old.is_kind(before, "empty"):
        return differs(f"{kind}_NARROWED", here)
    return compare(after, before, here)


def _contains(new: Array, old: Array, path: str, compare: Compare) -> Differences:
    """How many items have to be, and may be, of a kind; one at least if nothing is said."""
    after, before = new.shape.keywords, old.shape.keywords
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
    return found + upper(new.shape, old.shape, "maxContains", "MAX_CONTAINS", path)
