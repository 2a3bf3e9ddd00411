"""Whether one JSON schema takes every document that another takes, by the rules of Confluent's registry.

The rules are its published ones. Where they look away (patterns of properties, names, conditions, what arrays
contain, required properties that are not described), we look. Where they trust people, so do we: a required
property with a default may be added, and a oneOf may get another choice, though a document that was valid can
be invalid then. additionalItems counts where drafts say it does: after a list of items.
"""

from headrace.registry.formats.differences import Differences, Pairs, join
from headrace.registry.formats.json_arrays import Array, arrays
from headrace.registry.formats.json_bounds import numbers, strings
from headrace.registry.formats.json_keywords import Node
from headrace.registry.formats.json_matching import all_matched
from headrace.registry.formats.json_messages import differs
from headrace.registry.formats.json_objects import Object, objects
from headrace.registry.formats.json_schema import JsonSchema
from headrace.registry.formats.json_shapes import Shape, Shapes

_CHOICES = frozenset({"anyOf", "oneOf"})


def differences(reader: JsonSchema, writer: JsonSchema) -> Differences:
    """What `reader` refuses of what `writer` takes."""
    shapes = Shapes(reader.resources, writer.resources)
    return _Comparison(shapes).pairs.all(shapes.of(reader.root), shapes.of(writer.root), "#/")


class _Comparison:
    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self.pairs: Pairs[Shape] = Pairs(self._rule)

    def _compare(self, new: Shape | Node, old: Shape | Node, path: str) -> Differences:
        return self.pairs.compare(self._shapes.of(new), self._shapes.of(old), path)

    def _rule(self, new: Shape, old: Shape, path: str) -> Differences:
        if old.kind == "false" or new.kind == "empty":
            return []
        self.pairs.weigh(new.weight + old.weight)
        if new.combined != old.combined and self._one_of_them_fits(new, old, path):
            return []
        if new.combined and old.combined:
            return self._combined(new, old, path)
        if new.kind != old.kind:
            return differs("TYPE_CHANGED", path)
        narrowed = differs("TYPE_NARROWED", path) if new.strict and not old.strict else []
        return narrowed + self._same_kind(new, old, path)

    def _same_kind(self, new: Shape, old: Shape, path: str) -> Differences:
        match new.kind:
            case "string":
                return strings(new, old, path)
            case "number":
                return numbers(new, old, path)
            case "object":
                return objects(Object(new, self._shapes), Object(old, self._shapes), path, self._compare)
            case "array":
                return arrays(Array(new, self._shapes), Array(old, self._shapes), path, self._compare)
            case "enum" | "const":
                return _values(new, old, join(path, new.kind))
            case "not":
                excluded = self._compare(old.keywords["not"], new.keywords["not"], path)
                return differs("NOT_TYPE_EXTENDED", join(path, "not")) if excluded else []
            case "if":
                return self._conditions(new, old, path)
        return []

    def _one_of_them_fits(self, new: Shape, old: Shape, path: str) -> bool:
        """Whether one of several will do: a choice that takes a schema, a demand that a schema covers."""
        if new.combined and (len(new.parts) == 1 or new.kind in _CHOICES):
            return any(not self._compare(part, old, path) for part in new.parts)
        if old.combined and (len(old.parts) == 1 or old.kind == "allOf"):
            return any(not self._compare(new, part, path) for part in old.parts)
        return False

    def _combined(self, new: Shape, old: Shape, path: str) -> Differences:
        if not _criteria_fit(new, old):
            return differs("COMBINED_TYPE_CHANGED", path)
        if len(new.parts) != len(old.parts):
            new, old = new.distinct, old.distinct
        found: Differences = []
        if len(new.parts) > len(old.parts) and new.kind == "allOf":
            found += differs("PRODUCT_TYPE_EXTENDED", path)
        if len(new.parts) < len(old.parts) and old.kind in _CHOICES:
            found += differs("SUM_TYPE_NARROWED", path)
        return (
            found
            if self._matched(new, old, path)
            else found + differs("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)
        )

    def _matched(self, new: Shape, old: Shape, path: str) -> bool:
        """Whether everything in the shorter list has something in the longer one that it goes with."""

        def fits(after: int, before: int) -> bool:
            here = join(path, old.kind, before)
            return not self._compare(new.parts[after], old.parts[before], here)

        if len(old.parts) <= len(new.parts):
            return all_matched(len(old.parts), len(new.parts), lambda before, after: fits(after, before))
        return all_matched(len(new.parts), len(old.parts), fits)

    def _conditions(self, new: Shape, old: Shape, path: str) -> Differences:
        """The same question in both, and answers that are no stricter."""
        after, before = new.keywords, old.keywords
        here = join(path, "if")
        if self._compare(after["if"], before["if"], here) or self._compare(before["if"], after["if"], here):
            return differs("CONDITION_CHANGED", here)
        then = self._compare(after["then"], before["then"], join(path, "then"))
        return then + self._compare(after["else"], before["else"], join(path, "else"))


def _criteria_fit(new: Shape, old: Shape) -> bool:
    """Whether allOf, anyOf or oneOf may have become what it is now."""
    if new.kind in {old.kind, "anyOf"}:
        return True
    if len(old.parts) == 1:
        return len(new.parts) == 1 or new.kind == "oneOf"
    return len(new.parts) == 1 and old.kind == "allOf"


def _values(new: Shape, old: Shape, path: str) -> Differences:
    if old.values <= new.values:
        return []
    return differs("ENUM_ARRAY_NARROWED" if new.values < old.values else "ENUM_ARRAY_CHANGED", path)
