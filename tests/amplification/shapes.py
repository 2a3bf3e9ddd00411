"""Requests that ask for much in few bytes, made from the message schemas: every API, every array in it.

A shape is one request: an API, a version, one array (or the arrays on the way to it) with many elements, and
what stands in the elements. Nothing here knows what an API does; topics and groups that exist are in `World`.
"""

import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from headrace.broker.requests.dispatch import HANDLERS, enabled, load_handlers
from headrace.protocol.api import request_class
from headrace.protocol.compiled.structs import StructType, default_of, struct_named
from headrace.protocol.fields import ZERO_UUID, Field
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey

load_handlers()
_LONG: Final = 32_000


class Filling(Enum):
    """What the elements of the large array are."""

    SAME = "the same one again and again"
    KNOWN = "things that exist, each of them many times"
    UNKNOWN = "as many things that do not exist"
    LONG = "things with the longest names, which do not exist"


class Scalars(Enum):
    """What the fields outside of the large array are."""

    DEFAULT = "their defaults"
    ZERO = "0, and an existing name"


@dataclass(frozen=True, slots=True)
class World:
    """What exists in the broker that is asked."""

    topics: tuple[tuple[str, bytes], ...]  # name and id
    partitions: int  # of each
    group: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One request, not built yet."""

    key: int
    version: int
    path: tuple[str, ...]  # the arrays from the request to the large one
    filling: Filling
    scalars: Scalars
    nested: bool = False  # every array on the path is large, not only the last

    def __str__(self) -> str:
        name = request_class(self.key).__name__.removesuffix("Request")
        path = ".".join(self.path) or "-"
        return (
            f"{name} v{self.version} {path} {self.filling.name}/{self.scalars.name}{'/NESTED' * self.nested}"
        )


def version_classes(key: int) -> list[int]:
    """The versions that differ most: the first, the first flexible one, and the last."""
    versions = enabled(HANDLERS, unstable=False)[key].versions
    flexible = [version for version in versions if version in request_class(key).__codec__.flexible]
    return sorted({versions[0], versions[-1], *flexible[:1]})


def all_shapes() -> Iterator[Shape]:
    """Every shape of every API that clients may use."""
    for handler in HANDLERS.values():
        if not isinstance(handler.key, ApiKey):
            continue  # those of brokers are trusted like the controller itself
        for version in version_classes(handler.key):
            for path in _arrays(request_class(handler.key), version):
                for filling, scalars in itertools.product(Filling, Scalars):
                    yield Shape(handler.key, version, path, filling, scalars)
                    if len(path) > 1:
                        yield Shape(handler.key, version, path, filling, scalars, nested=True)
            for scalars in Scalars:
                yield Shape(handler.key, version, (), Filling.LONG, scalars)


def _arrays(cls: StructType, version: int) -> Iterator[tuple[str, ...]]:
    """The paths to all arrays of a message, also inside of structs."""
    for field in cls.__fields__:
        if not field.exists_in(version):
            continue
        if field.is_array:
            yield (field.name,)
        if field.holds_structs:
            for rest in _arrays(struct_named(field.item_kind, cls), version):
                yield (field.name, *rest)


def build(shape: Shape, world: World, size: int, max_elements: int) -> Message:
    """The request, of about `size` bytes unless `max_elements` are reached first."""
    few, several = (
        sum(map(len, _Builder(shape, world, count).request().encode(shape.version))) for count in (16, 256)
    )
    element_bytes = max(1.0, (several - few) / (256 - 16))
    count = min(max_elements, max(1, int((size - few) / element_bytes)))
    return _Builder(shape, world, count).request()


class _Builder:
    def __init__(self, shape: Shape, world: World, count: int) -> None:
        self._shape, self._world = shape, world
        depth = len(shape.path)
        self._count = max(1, round(count ** (1 / depth))) if shape.nested and depth else count
        self._numbers = itertools.count()

    def request(self) -> Message:
        cls = request_class(self._shape.key)
        request: Message = self._struct(cls, self._shape.path, large=not self._shape.path)
        return request

    def _struct(self, cls: StructType, path: tuple[str, ...], *, large: bool) -> Any:
        number = next(self._numbers)
        values = {field.name: self._value(field, cls, path, number, large=large) for field in cls.__fields__}
        return cls(**values)

    def _value(
        self, field: Field, cls: StructType, path: tuple[str, ...], number: int, *, large: bool
    ) -> Any:
        if not field.exists_in(self._shape.version):
            return default_of(field, cls)
        if path and field.name == path[0]:
            return self._on_path(field, cls, path[1:])
        if field.is_array:
            return ()
        if field.holds_structs:
            return default_of(field, cls)
        return self._scalar(field, cls, number, large=large)

    def _on_path(self, field: Field, cls: StructType, rest: tuple[str, ...]) -> Any:
        if not field.is_array:
            return self._struct(struct_named(field.item_kind, cls), rest, large=not rest)
        count = self._count if self._shape.nested or not rest else 1
        if field.holds_structs:
            item = struct_named(field.item_kind, cls)
            if self._shape.filling is Filling.SAME:
                return [self._struct(item, rest, large=True)] * count
            return [self._struct(item, rest, large=True) for _ in range(count)]
        return [self._scalar(field, cls, next(self._numbers), large=True) for _ in range(count)]

    def _scalar(self, field: Field, cls: StructType, number: int, *, large: bool) -> Any:
        filling = self._shape.filling if large else None
        kind = field.item_kind
        if kind == "string":
            return self._string(field, number, filling)
        if kind == "uuid":
            return self._uuid(number, filling)
        if kind == "bytes":
            return bytes(_LONG) if filling is Filling.LONG else b""
        if kind == "records":
            return None if field.nullable_in(self._shape.version) else b""
        if kind.startswith(("int", "uint")) and filling in {Filling.KNOWN, Filling.UNKNOWN, Filling.LONG}:
            known = filling is Filling.KNOWN
            return number % self._world.partitions if known else number % _most(kind)
        if self._shape.scalars is Scalars.ZERO or field.is_array:
            return False if kind == "bool" else 0
        return default_of(field, cls)

    def _string(self, field: Field, number: int, filling: Filling | None) -> str | None:
        if filling is Filling.LONG:
            return f"{number:x}".ljust(_LONG, "x")
        if filling is Filling.UNKNOWN:
            return f"unknown-{number:x}"
        if (
            filling is None
            and self._shape.scalars is Scalars.DEFAULT
            and field.nullable_in(self._shape.version)
        ):
            return None
        if "group" in field.name:
            return self._world.group
        return self._world.topics[0 if filling is Filling.SAME else number % len(self._world.topics)][0]

    def _uuid(self, number: int, filling: Filling | None) -> bytes:
        if filling in {Filling.UNKNOWN, Filling.LONG}:
            return number.to_bytes(16, "big")
        if self._shape.scalars is Scalars.ZERO:
            return ZERO_UUID  # where a topic has a name as well, only one of the two may be given
        return self._world.topics[0 if filling is Filling.SAME else number % len(self._world.topics)][1]


def _most(kind: str) -> int:
    return {"int8": 127, "int16": 32767, "uint16": 65535}.get(kind, 2**31 - 1)


def sample(count: int, seed: int) -> list[Shape]:
    """Some shapes, at least one of every API."""
    chance = random.Random(seed)
    shapes = list(all_shapes())
    by_key: dict[int, list[Shape]] = {}
    for shape in shapes:
        by_key.setdefault(shape.key, []).append(shape)
    chosen = [chance.choice(each) for each in by_key.values()]
    return chosen + chance.sample(shapes, max(0, count - len(chosen)))
