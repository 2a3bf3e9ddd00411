"""Batches of records in the registry's format, decoded where Spark runs its Python: rows, or reasons.

A record begins with a zero byte and four that are the id of its schema, or with a one and 16 that are its
fingerprint. What those stand for never changes, so it is asked for once in the life of a process.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, NoReturn, TypeAlias

import pyarrow as pa

from headrace.pipeline.registry.client import Clock, Ref, Schemas, UnknownSchema, patiently, shown
from headrace.pipeline.registry.fitting import build_fitting
from headrace.pipeline.registry.formats import reading
from headrace.pipeline.registry.reader import Reading, Unreadable
from headrace.pipeline.registry.shapes import columns_of
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats import InvalidSchema

ID_BYTES: Final = 5
FINGERPRINT_BYTES: Final = 17
MOST_WRITERS: Final = 1000  # schemas that a process remembers
MOST_UNKNOWN: Final = 10_000
_UNKNOWN_S: Final = 60.0  # how long an unknown id is not asked for again
_AGAIN_S: Final = 1.0  # a registry of several nodes may learn of an id a moment late

Read: TypeAlias = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """What executors are told: where schemas are, and the one that the columns are of."""

    url: str = field(repr=False)  # it may have a password in it
    schema: Whole
    message: str | None = None
    patience_s: float = 120.0


class Batches:
    """Decodes for one reader's schema, and remembers the writers' schemas."""

    def __init__(self, reader: Reading, ask: Callable[[Ref], Whole], clock: Clock | None = None) -> None:
        """`ask` asks the registry: it raises as `Schemas.one` does, or PipelineError to give up."""
        self._reading = reader
        self._ask = ask
        self._clock = clock or Clock()
        self._columns = columns_of(reader.shape)
        self._writers: OrderedDict[Ref, Read | str] = OrderedDict()  # a string says why there is none
        self._unknown: OrderedDict[Ref, float] = OrderedDict()  # and until when that is believed

    def decode(self, values: Sequence[bytes | None]) -> pa.StructArray:
        """A struct of `row` and `reason` for each value; where there is no value, both are null."""
        self._learn(values)
        rows: list[Any] = [None] * len(values)
        reasons: list[str | None] = [None] * len(values)
        for number, value in enumerate(values):
            if value is None:
                continue
            try:
                rows[number] = self._one(value)
            except Unreadable as why:
                reasons[number] = str(why)
        row = build_fitting(self._columns, rows, reasons.__setitem__)
        return pa.StructArray.from_arrays([row, pa.array(reasons, pa.string())], names=["row", "reason"])

    def _one(self, value: bytes) -> Any:
        ref, end = _ref(value) or _none(value)
        writer = self._writers.get(ref)
        if writer is None:
            raise Unreadable(f"its schema {shown(ref)} is not in the registry")
        if isinstance(writer, str):
            raise Unreadable(f"{writer} (schema {shown(ref)})")
        return writer(value[end:])

    # -- schemas -------------------------------------------------------------------------------

    def _learn(self, values: Sequence[bytes | None]) -> None:
        """Ask for the schemas of a batch that are new to us: each once, and unknown ones once more."""
        now = self._clock.now()
        given = {found[0] for value in values if value is not None and (found := _ref(value))}
        new = {each for each in given - self._writers.keys() if self._unknown.get(each, now) <= now}
        unknown = [each for each in sorted(new, key=shown) if not self._is_there(each)]
        if unknown:
            self._clock.sleep(_AGAIN_S)
            for each in unknown:
                if not self._is_there(each):
                    self._unknown[each] = self._clock.now() + _UNKNOWN_S
        for each in given & self._writers.keys():
            self._writers.move_to_end(each)
        _shorten(self._writers, max(MOST_WRITERS, len(given)))
        _shorten(self._unknown, max(MOST_UNKNOWN, len(given)))

    def _is_there(self, ref: Ref) -> bool:
        try:
            self._writers[ref] = self._reading.of(self._ask(ref))
        except UnknownSchema:
            return False
        except (InvalidSchema, Unreadable) as why:
            self._writers[ref] = str(why)
        return True


@lru_cache(maxsize=32)
def batches(wanted: ReaderSpec) -> Batches:
    """The one of this process."""
    schemas = Schemas(wanted.url)

    def ask(ref: Ref) -> Whole:
        return patiently(f"schema {shown(ref)}", lambda: schemas.one(ref), wanted.patience_s)

    return Batches(reading(wanted.schema, wanted.message), ask)


def _ref(value: bytes) -> tuple[Ref, int] | None:
    """The schema that a value names, and where the data begins."""
    if len(value) >= ID_BYTES and value[0] == 0:
        return int.from_bytes(value[1:ID_BYTES]), ID_BYTES
    if len(value) >= FINGERPRINT_BYTES and value[0] == 1:
        return value[1:FINGERPRINT_BYTES], FINGERPRINT_BYTES
    return None


def _none(value: bytes) -> NoReturn:
    if value[:1] not in {b"\0", b"\1"}:
        begins = f"it begins with 0x{value[:1].hex()}" if value else "it is empty"
        raise Unreadable(f"it has no schema id: {begins}, where a zero byte and the id were expected")
    size = FINGERPRINT_BYTES if value[0] else ID_BYTES
    raise Unreadable(f"it has no schema id: it ends after {len(value)} of {size} bytes")


def _shorten(cache: OrderedDict[Ref, Any], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
