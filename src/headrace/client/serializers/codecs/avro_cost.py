"""Which Avro schemas make decoding cost more than the bytes suggest."""

from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Final

from headrace.registry.formats.avro.types import AvroType

DEEP_BYTES: Final = 1000  # of a value of a recursive schema, which may be nested that deeply
DECIMAL_BYTES: Final = 10_000  # of a decimal, whose conversion takes time by the square of its length


@dataclass(frozen=True, slots=True)
class AvroCost:
    """What makes decoding non-linear; without any of it, time and memory are proportional to the bytes."""

    items_without_bytes: bool  # an array of nulls is only its length, however many there are
    recursive: bool
    decimals: bool

    def is_linear(self, data: bytes) -> bool:
        """Return whether decoding takes time and memory in proportion to the number of bytes."""
        return not (
            self.items_without_bytes
            or (self.recursive and len(data) > DEEP_BYTES)
            or (self.decimals and len(data) > DECIMAL_BYTES)
        )


def cost_of(root: AvroType) -> AvroCost:
    types = _types(root)
    empty = _EmptyTypes()
    return AvroCost(
        items_without_bytes=any(each.kind in {"array", "map"} and empty.has(each.inner) for each in types),
        recursive=_is_recursive(types),
        decimals=any(each.props.get("logicalType") == "decimal" for each in types),
    )


def _types(root: AvroType) -> list[AvroType]:
    found: dict[int, AvroType] = {}
    waiting = [root]
    while waiting:
        each = waiting.pop()
        if id(each) not in found:
            found[id(each)] = each
            waiting += _parts(each)
    return list(found.values())


def _parts(of: AvroType) -> list[AvroType]:
    return [*of.branches, *(field.type for field in of.fields)]


class _EmptyTypes:
    """Types whose values have no bytes: null, fixed(0), and records of nothing else."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}

    def has(self, of: AvroType) -> bool:
        if of.kind not in {"record", "error"}:
            return of.kind == "null" or (of.kind == "fixed" and of.size == 0)
        if id(of) not in self._known:
            self._known[id(of)] = False  # for a type within itself, which needs a union
            self._known[id(of)] = all(self.has(field.type) for field in of.fields)
        return self._known[id(of)]


def _is_recursive(types: list[AvroType]) -> bool:
    try:
        TopologicalSorter({id(each): map(id, _parts(each)) for each in types}).prepare()
    except CycleError:
        return True
    return False
