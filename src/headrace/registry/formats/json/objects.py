"""Objects in JSON schemas: which properties may come and go depends on what is allowed beside them."""

from collections.abc import Iterator
from typing import Any

from headrace.registry.formats.differences import Differences, join
from headrace.registry.formats.json.bounds import Compare, limit, others
from headrace.registry.formats.json.keywords import Node
from headrace.registry.formats.json.messages import differs
from headrace.registry.formats.json.shapes import Shape, Shapes
from headrace.registry.formats.limits import MAX_MESSAGES


class Object:
    """The keywords of an object, with their defaults."""

    def __init__(self, shape: Shape, shapes: Shapes) -> None:
        self.shape = shape
        self.properties: dict[str, Node] = self.get("properties")
        self.patterns: dict[str, Node] = self.get("patternProperties")
        self._shapes = shapes

    def get(self, keyword: str) -> dict[str, Any]:
        """Return the value of a keyword that is a map."""
        found: dict[str, Any] = self.shape.keywords.get(keyword, {})
        return found

    @property
    def rest(self) -> tuple[Node, str]:
        """The schema of properties that neither a name nor a pattern matches, and its keyword."""
        for keyword in ("additionalProperties", "unevaluatedProperties"):
            if keyword in self.shape.keywords:
                return self.shape.keywords[keyword], keyword
        return True, "additionalProperties"

    def covers(self, name: str) -> list[Node]:
        """Return the schemas that apply to a property without a schema of its own."""
        matching = [
            schema for pattern, schema in self.patterns.items() if self._shapes.matches(pattern, name)
        ]
        return matching or [self.rest[0]]


def objects(new: Shape, old: Shape, path: str, shapes: Shapes, compare: Compare) -> Differences:
    """Return what the new schema rejects that the old one accepts."""
    return _Comparison(Object(new, shapes), Object(old, shapes), shapes, compare).differences(path)


class _Comparison:
    def __init__(self, new: Object, old: Object, shapes: Shapes, compare: Compare) -> None:
        self._new = new
        self._old = old
        self._shapes = shapes
        self._compare = compare

    def differences(self, path: str) -> Differences:
        new, old = self._new, self._old
        (after, keyword), (before, _) = new.rest, old.rest
        rest = "ADDITIONAL_PROPERTIES" if keyword == "additionalProperties" else "UNEVALUATED_PROPERTIES"
        return (
            self._required(join(path, "required"))
            + self._properties(join(path, "properties"))
            + self._patterns(join(path, "patternProperties"))
            + others(rest, after, before, join(path, keyword), self._shapes, self._compare)
            + self._names(join(path, "propertyNames"))
            + [found for dependency in self._dependencies(join(path, "dependencies")) for found in dependency]
            + limit(new.shape, old.shape, "maxProperties", path)
            + limit(new.shape, old.shape, "minProperties", path)
        )

    def _required(self, path: str) -> Differences:
        new, old, found = self._new, self._old, Differences()
        for name in sorted(new.shape.required - old.shape.required):
            added = name in new.properties and name not in old.properties  # `_added` reports these
            default = name in new.properties and self._shapes.has_default(new.properties[name])
            if not added and not default:
                found += differs("REQUIRED_ATTRIBUTE_ADDED", join(path, name))
            if len(found) == MAX_MESSAGES:
                break
        return found

    def _properties(self, path: str) -> Differences:
        new, old, found = self._new.properties, self._old.properties, Differences()
        for name in dict.fromkeys((*old, *new)):
            here = join(path, name)
            if name not in new:
                found += self._removed(name, here)
            elif name not in old:
                found += self._added(name, here)
            else:
                found += self._compare(new[name], old[name], here)
        return found

    def _removed(self, name: str, path: str) -> Differences:
        """Check that the new schema accepts the property as one that it does not list."""
        before = self._old.properties[name]
        for cover in self._new.covers(name):
            if self._shapes.is_kind(cover, "false") and not self._shapes.is_kind(before, "false"):
                return differs("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path)
            if self._compare(cover, before, path):
                return differs("PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
        return []

    def _added(self, name: str, path: str) -> Differences:
        """Check that the property accepts all values that documents of the old schema may have there."""
        after, covers = self._new.properties[name], self._old.covers(name)
        required = name in self._new.shape.required and name not in self._old.shape.required
        default = self._shapes.has_default(after)
        if all(self._shapes.is_kind(cover, "empty") for cover in covers):
            if self._shapes.is_kind(after, "empty") and not required:
                return []
            kind = "OPTIONAL_PROPERTY"
            if required:
                kind = "REQUIRED_PROPERTY_WITH_DEFAULT" if default else "REQUIRED_PROPERTY"
            return differs(f"{kind}_ADDED_TO_OPEN_CONTENT_MODEL", path)
        found: Differences = []
        if all(self._compare(after, cover, path) for cover in covers):  # all covers apply, so one is enough
            found += differs("PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path)
        if required and not default:
            found += differs("REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", path)
        return found

    def _patterns(self, path: str) -> Differences:
        new, old, found = self._new.patterns, self._old.patterns, Differences()
        for pattern, after in new.items():
            here = join(path, pattern)
            if pattern in old:
                found += self._compare(after, old[pattern], here)
            elif not self._shapes.is_kind(after, "empty"):
                found += self._pattern_added(pattern, after, here)
        rest = self._new.rest[0]
        for pattern, before in old.items():
            if pattern not in new and self._compare(rest, before, join(path, pattern)):
                closed = self._shapes.is_kind(rest, "false")
                kind = "FROM_CLOSED" if closed else "NOT_COVERED_BY_PARTIALLY_OPEN"
                found += differs(f"PROPERTY_REMOVED_{kind}_CONTENT_MODEL", join(path, pattern))
        return found

    def _pattern_added(self, pattern: str, after: Node, path: str) -> Differences:
        """Check all properties that the pattern may match. Whether two patterns overlap is not decided."""
        old, matches = self._old, self._shapes.matches
        before = [schema for name, schema in old.properties.items() if matches(pattern, name)]
        if old.patterns or any(self._compare(after, schema, path) for schema in (*before, old.rest[0])):
            return differs("PATTERN_PROPERTY_ADDED", path)
        return []

    def _names(self, path: str) -> Differences:
        new, old = self._new.shape.keywords, self._old.shape.keywords
        if "propertyNames" not in new:
            return []
        if "propertyNames" not in old and not self._shapes.is_kind(new["propertyNames"], "empty"):
            return differs("PROPERTY_NAMES_ADDED", path)
        return self._compare(new["propertyNames"], old.get("propertyNames", True), path)

    def _dependencies(self, path: str) -> Iterator[Differences]:
        new, old = self._new, self._old
        schemas = old.get("dependencies") | old.get("dependentSchemas")
        names = old.get("dependencies") | old.get("dependentRequired")
        for keyword in ("dependencies", "dependentSchemas", "dependentRequired"):
            for name, after in new.get(keyword).items():
                here = join(path, name)
                if isinstance(after, list):
                    listed = names.get(name)
                    before = set(listed) if isinstance(listed, list) else None
                    if not set(after) <= (before or set()):
                        change = "CHANGED" if before is None or not set(after) > before else "EXTENDED"
                        yield differs(f"DEPENDENCY_ARRAY_{'ADDED' if before is None else change}", here)
                elif isinstance(earlier := schemas.get(name), dict | bool):
                    yield self._compare(after, earlier, here)
                elif not self._shapes.is_kind(after, "empty"):
                    yield differs("DEPENDENCY_SCHEMA_ADDED", here)
