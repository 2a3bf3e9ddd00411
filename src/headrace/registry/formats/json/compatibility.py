"""Whether one JSON schema accepts every document of another, by the rules of Confluent's registry.

We also compare what Confluent's rules ignore: patterns of properties, names, conditions, `contains`, required
properties that are not described. We accept what they accept although a valid document can become invalid: a
new required property with a default, and another choice in a oneOf. `additionalItems` counts where the drafts
define it, after a list of items.
"""

from collections.abc import Callable
from itertools import chain

from headrace.registry.formats.differences import Differences, Pairs, join
from headrace.registry.formats.json.arrays import arrays
from headrace.registry.formats.json.bounds import numbers, strings
from headrace.registry.formats.json.keywords import Node
from headrace.registry.formats.json.messages import differs
from headrace.registry.formats.json.objects import objects
from headrace.registry.formats.json.resources import Resources
from headrace.registry.formats.json.shapes import Shape, Shapes

_CHOICES = frozenset({"anyOf", "oneOf"})


def differences(
    reader: Node, reader_resources: Resources, writer: Node, writer_resources: Resources
) -> Differences:
    """Return what `reader` rejects that `writer` accepts."""
    shapes = Shapes(reader_resources, writer_resources)
    return _Comparison(shapes).pairs.all(shapes.of(reader), shapes.of(writer), "#/")


class _Comparison:
    def __init__(self, shapes: Shapes) -> None:
        self._shapes = shapes
        self.pairs: Pairs[Shape] = Pairs(self._rule)

    def _compare(self, new: Shape | Node, old: Shape | Node, path: str) -> Differences:
        return self.pairs.compare(self._shapes.of(new), self._shapes.of(old), path)

    def _rule(self, new: Shape, old: Shape, path: str) -> Differences:
        if old.kind == "false" or new.kind == "empty":
            return []
        self.pairs.count_parts(new.weight + old.weight)
        if new.combined != old.combined and self._one_part_is_enough(new, old, path):
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
                return objects(new, old, path, self._shapes, self._compare)
            case "array":
                return arrays(new, old, path, self._shapes, self._compare)
            case "enum" | "const":
                if old.values <= new.values:
                    return []
                kind = "ENUM_ARRAY_NARROWED" if new.values < old.values else "ENUM_ARRAY_CHANGED"
                return differs(kind, join(path, new.kind))
            case "not":
                excluded = self._compare(old.keywords["not"], new.keywords["not"], path)
                return differs("NOT_TYPE_EXTENDED", join(path, "not")) if excluded else []
            case "if":
                return self._conditions(new, old, path)
        return []

    def _one_part_is_enough(self, new: Shape, old: Shape, path: str) -> bool:
        """Return whether one choice of the new schema, or one part of the old one's allOf, is enough."""
        if new.combined and (len(new.parts) == 1 or new.kind in _CHOICES):
            return any(not self._compare(part, old, path) for part in new.parts)
        if old.combined and (len(old.parts) == 1 or old.kind == "allOf"):
            return any(not self._compare(new, part, path) for part in old.parts)
        return False

    def _combined(self, new: Shape, old: Shape, path: str) -> Differences:
        if not _may_become(new, old):
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
            else [*found, *differs("COMBINED_TYPE_SUBSCHEMAS_CHANGED", path)]
        )

    def _matched(self, new: Shape, old: Shape, path: str) -> bool:
        """Return whether each part of the shorter list is compatible with another part of the longer one."""

        def fits(after: int, before: int) -> bool:
            here = join(path, old.kind, before)
            return not self._compare(new.parts[after], old.parts[before], here)

        if len(old.parts) <= len(new.parts):
            return has_matching(len(old.parts), len(new.parts), lambda before, after: fits(after, before))
        return has_matching(len(new.parts), len(old.parts), fits)

    def _conditions(self, new: Shape, old: Shape, path: str) -> Differences:
        """Compare if, then, else: the conditions must be equivalent, the branches may not be stricter."""
        after, before = new.keywords, old.keywords
        here = join(path, "if")
        if self._compare(after["if"], before["if"], here) or self._compare(before["if"], after["if"], here):
            return differs("CONDITION_CHANGED", here)
        then = self._compare(after["then"], before["then"], join(path, "then"))
        return then + self._compare(after["else"], before["else"], join(path, "else"))


def _may_become(new: Shape, old: Shape) -> bool:
    """Return whether the allOf, anyOf or oneOf of the old schema may become that of the new one."""
    if new.kind in {old.kind, "anyOf"}:
        return True
    if len(old.parts) == 1:
        return len(new.parts) == 1 or new.kind == "oneOf"
    return len(new.parts) == 1 and old.kind == "allOf"


def has_matching(few: int, many: int, fits: Callable[[int, int], bool]) -> bool:
    """Return whether each of `few` can be paired with one of `many` that it fits, without sharing.

    An equal index is tried first, so that a list with appended parts takes one step per part.
    """
    taken: dict[int, int] = {}  # indexes of many: the index of few that they are paired with
    return all(_pair(one, many, fits, taken) for one in range(few))


def _pair(first: int, many: int, fits: Callable[[int, int], bool], taken: dict[int, int]) -> bool:
    """Pair `first`, re-pairing others by the shortest augmenting path if necessary."""
    reached_by: dict[int, int] = {}  # indexes of many: the index of few that could take it
    waiting = [first]
    for one in waiting:  # the list grows during the loop
        for index in chain([one], range(many)):
            if index in reached_by or not fits(one, index):
                continue
            reached_by[index] = one
            if index not in taken:
                indexes = {paired: at for at, paired in taken.items()}
                while (paired := reached_by[index]) != first:
                    taken[index] = paired
                    index = indexes[paired]  # noqa: PLW2901  the walk back along the path
                taken[index] = first
                return True
            waiting.append(taken[index])
    return False
