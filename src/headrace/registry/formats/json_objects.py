"""Objects in JSON schemas: which properties may come and go depends on what is allowed beside those named."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json_bounds import lower, upper
from headrace.registry.formats.json_keywords import Node
from headrace.registry.formats.json_messages import differs
from headrace.registry.formats.json_shapes import Shape, Shapes
from headrace.registry.formats.limits import MAX_MESSAGES

Compare = Callable[[Node, Node, str], Differences]  # the new schema, the old one, where


@dataclass(frozen=True)
class Object:
    """An object's keywords, with what they mean when they are not there."""

    shape: Shape
    shapes: Shapes

    def get(self, keyword: str) -> dict[str, Any]:
        """A keyword that has names in it."""
        found: dict[str, Any] = self.shape.keywords.get(keyword, {})
        return found

    @property
    def properties(self) -> dict[str, Node]:
        return self.get("properties")

    @property
    def patterns(self) -> dict[str, Node]:
        return self.get("patternProperties")

    @property
    def required(self) -> frozenset[str]:
        return self.shape.required

    @property
    def rest(self) -> tuple[Node, str]:
        """What is allowed where no property and no pattern says anything, and which keyword says so."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in self.shape.keywords:
                return self.shape.keywords[keyword], keyword
        return True, "additionalProperties"

    def covers(self, name: str) -> list[Node]:
        """What is asked of a property that has no schema of its own."""
        matching = [
            schema for pattern, schema in self.patterns.items() if self.shapes.patterns.match(pattern, name)
        ]
        return matching or [self.rest[0]]

    def is_kind(self, node: Node, kind: str) -> bool:
        return self.shapes.of(node).kind == kind


def objects(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    """What the new schema refuses that the old one took."""
    return (
        _required(new, old, join(path, "required"))
        + _properties(new, old, join(path, "properties"), compare)
        + _patterns(new, old, join(path, "patternProperties"), compare)
        + _rest(new, old, path, compare)
        + _names(new, old, join(path, "propertyNames"), compare)
        + _dependencies(new, old, join(path, "dependencies"), compare)
        + upper(new.shape, old.shape, "maxProperties", "MAX_PROPERTIES", path)
        + lower(new.shape, old.shape, "minProperties", "MIN_PROPERTIES", path)
    )


def _required(new: Object, old: Object, path: str) -> Differences:
    found: Differences = []
    for name in sorted(new.required - old.required):
        added = name in new.properties and name not in old.properties  # which is looked at by itself
        default = name in new.properties and new.shapes.has_default(new.properties[name])
        if not added and not default:
            found += differs("REQUIRED_ATTRIBUTE_ADDED", join(path, name))
        if len(found) == MAX_MESSAGES:
            break
    return found


def _properties(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    found: Differences = []
    for name in dict.fromkeys((*old.properties, *new.properties)):
        here = join(path, name)
        if name not in new.properties:
            found += _removed(new, old, name, here, compare)
        elif name not in old.properties:
            found += _added(new, old, name, here, compare)
        else:
            found += compare(new.properties[name], old.properties[name], here)
    return found


def _removed(new: Object, old: Object, name: str, path: str, compare: Compare) -> Differences:
    """The new schema has to take, as something it says nothing special about, what the old one asked for."""
    before = old.properties[name]
    for cover in new.covers(name):
        if new.is_kind(cover, "false") and not old.is_kind(before, "false"):
            return differs("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
        if compare(cover, before, path):
            return differs("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    return []


def _added(new: Object, old: Object, name: str, path: str, compare: Compare) -> Differences:
    """Documents of the old schema may have had anything of that name that it allowed."""
    after, covers = new.properties[name], old.covers(name)
    required = name in new.required and name not in old.required
    default = new.shapes.has_default(after)
    if all(old.is_kind(cover, "empty") for cover in covers):
        if new.is_kind(after, "empty") and not required:
            return []
        kind = (
            ("REQUIRED_PROPERTY_WITH_DEFAULT" if default else "REQUIRED_PROPERTY")
            if required
            else "OPTIONAL_PROPERTY"
        )
        return differs(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
    found: Differences = []
    if all(compare(after, cover, path) for cover in covers):  # all applied: one that fits is enough
        found += differs("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
    if required and not default:
        found += differs("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path)
    return found


def _patterns(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    found: Differences = []
    for pattern, after in new.patterns.items():
        here = join(path, pattern)
        if pattern in old.patterns:
            found += compare(after, old.patterns[pattern], here)
        elif not new.is_kind(after, "empty"):
            found += _pattern_added(pattern, after, old, here, compare)
    for pattern, before in old.patterns.items():
        rest = new.rest[0]
        if pattern not in new.patterns and compare(rest, before, join(path, pattern)):
            kind = "FROM_CLOSED" if new.is_kind(rest, "false") else "NOT_COVERED_BY_PARTIALLY_OPEN"
            found += differs(f"PROPERTY_REMOVED_{kind}_CONTENT_MODEL", join(path, pattern))
    return found


def _pattern_added(pattern: str, after: Node, old: Object, path: str, compare: Compare) -> Differences:
    """Fine if all that can have had such a name fits; whether two patterns meet is not for us to say."""
    before = [schema for name, schema in old.properties.items() if old.shapes.patterns.match(pattern, name)]
    if old.patterns or any(compare(after, schema, path) for schema in (*before, old.rest[0])):
        return differs("PATTERN_PROPERTY_ADDED", path)
    return []


def _rest(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    (after, keyword), (before, _) = new.rest, old.rest
    here = join(path, keyword)
    kind = "ADDITIONAL_PROPERTIES" if keyword == "additionalProperties" else "UNEVALUATED_PROPERTIES"
    if old.is_kind(before, "false") or new.is_kind(after, "empty"):
        return []
    if new.is_kind(after, "false"):
        return differs(f"{kind}_REMOVED", here)
    if old.is_kind(before, "empty"):
        return differs(f"{kind}_NARROWED", here)
    return compare(after, before, here)


def _names(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    if "propertyNames" not in new.shape.keywords:
        return []
    if "propertyNames" not in old.shape.keywords and not new.is_kind(
        new.shape.keywords["propertyNames"], "empty"
    ):
        return differs("PROPERTY_NAMES_ADDED", path)
    return compare(new.shape.keywords["propertyNames"], old.shape.keywords.get("propertyNames", True), path)


def _dependencies(new: Object, old: Object, path: str, compare: Compare) -> Differences:
    found: Differences = []
    schemas = old.get("dependencies") | old.get("dependentSchemas")
    names = old.get("dependencies") | old.get("dependentRequired")
    asked = [new.get(keyword) for keyword in ("dependencies", "dependentSchemas", "dependentRequired")]
    for name, after in [item for dependencies in asked for item in dependencies.items()]:
        here = join(path, name)
        if isinstance(after, list):
            found += _names_depended_on(set(after), names.get(name), here)
        elif isinstance(earlier := schemas.get(name), dict | bool):
            found += compare(after, earlier, here)
        elif not new.is_kind(after, "empty"):
            found += differs("DEPENDENCY_SCHEMA_ADDED", here)
    return found


def _names_depended_on(after: set[str], earlier: Any, path: str) -> Differences:
    if not isinstance(earlier, list):
        return differs("DEPENDENCY_ARRAY_ADDED", path) if after else []
    if after <= set(earlier):
        return []
    return differs("DEPENDENCY_ARRAY_EXTENDED" if after > set(earlier) else "DEPENDENCY_ARRAY_CHANGED", path)
