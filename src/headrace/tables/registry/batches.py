"""Batches of records, decoded by executors into rows, or reasons why a record cannot be decoded.

A schema id never changes its meaning, so a process requests each of them once.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final, TypeAlias

import pyarrow as pa

from headrace.registry import schema_ids
from headrace.registry.formats import InvalidSchema, SchemaType
from headrace.system.extras import HTTP, importing
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry import client
from headrace.tables.registry.reader import Reader, ResolvedSchema, Unreadable
from headrace.tables.registry.shapes import Struct, build_fitting, columns_of, truncating

MAX_WRITERS: Final = 1000  # schemas that a process caches
MAX_UNKNOWN: Final = 10_000
_UNKNOWN_S: Final = 60.0  # how long an unknown id is not requested again
_RETRY_S: Final = 1.0  # a node of the registry may learn of an id with a delay

Decode: TypeAlias = Callable[[bytes], Any]


@dataclass(frozen=True, slots=True)
class ReaderSpec:
    """What executors need to decode: the registry, and the schema of the columns."""

    url: str | None = field(repr=False)  # may contain a password; None: records have no schema id
    schema: ResolvedSchema
    message: str | None = None
    patience_s: float = 120.0
    truncate: bool = False  # the nanoseconds of times, instead of refusing them
    version: tuple[str, int] | None = None  # the subject of the schema and its version; None: of a file
    follow: bool = False  # newer versions fail the batch


def reader_of(schema: ResolvedSchema, message: str | None = None) -> Reader:
    """Return the reader of a schema; ReadError if it cannot be parsed, MissingExtra without its packages.

    The readers are imported with the first schema: topics without schemas are read without their packages.
    """
    kind = schema.schema.type
    if message is not None and kind is not SchemaType.PROTOBUF:
        raise ReadError(f"the schema is {kind}: only a Protobuf schema has several messages")
    with importing(HTTP, f"a schema in {kind}"):
        from headrace.tables.registry.avro_reader import AvroReader  # noqa: PLC0415
        from headrace.tables.registry.json_reader import JsonReader  # noqa: PLC0415
        from headrace.tables.registry.protobuf_reader import ProtobufReader  # noqa: PLC0415
    try:
        parsed: Any = schema.parsed()
    except InvalidSchema as error:
        raise ReadError(f"the schema cannot be parsed: {error}") from error
    if kind is SchemaType.PROTOBUF:
        return ProtobufReader(parsed, message)
    return AvroReader(parsed) if kind is SchemaType.AVRO else JsonReader(parsed)


def decode_rows(columns: Struct, decode: Decode, values: Sequence[bytes | None]) -> pa.StructArray:
    """Return a struct of `row` and `reason` for each value; both are null for a null."""
    rows: list[Any] = [None] * len(values)
    reasons: list[str | None] = [None] * len(values)
    for number, value in enumerate(values):
        if value is None:
            continue
        try:
            rows[number] = decode(value)
        except Unreadable as error:
            reasons[number] = str(error)
    row = build_fitting(columns, rows, reasons.__setitem__)
    return pa.StructArray.from_arrays([row, pa.array(reasons, pa.string())], names=["row", "reason"])


class Batches:
    """Decodes records with schema ids into rows of one reader's schema, and caches the writers' schemas."""

    def __init__(
        self,
        reader: Reader,
        fetch: Callable[[schema_ids.SchemaRef], ResolvedSchema],
        clock: client.Clock | None = None,
        *,
        is_newer: Callable[[ResolvedSchema], bool] = lambda _: False,
        truncate: bool = False,
    ) -> None:
        """`fetch` requests a schema: it raises as `Schemas.get` does, or ReadError to fail the batch.

        `is_newer` returns whether a schema is of a later version than the reader's.
        """
        self._reader = reader
        self._fetch = fetch
        self._is_newer = is_newer
        self._clock = clock or client.Clock()
        self._columns = columns_of(truncating(reader.shape) if truncate else reader.shape)
        self._writers: OrderedDict[schema_ids.SchemaRef, Decode | str] = (
            OrderedDict()
        )  # a string is why there is none
        self._by_head: dict[bytes, Decode] = {}  # the writers of a batch, by the bytes of their ids
        self._newer: set[schema_ids.SchemaRef] = set()  # those of `_writers` that are newer than the reader
        self._unknown: OrderedDict[schema_ids.SchemaRef, float] = OrderedDict()  # when to request it again

    def decode(self, values: Sequence[bytes | None]) -> pa.StructArray:
        """Return a struct of `row`, `reason` and `newer` for each value, as `decode_rows` does.

        `newer` is whether the value was written with a later version of the schema than the reader's.
        """
        refs = _refs(values)
        self._fetch_new(refs)
        known = {ref: self._writers.get(ref) for ref in refs if isinstance(ref, int)}
        self._by_head = {
            b"\0" + each.to_bytes(4): writer for each, writer in known.items() if callable(writer)
        }
        found = decode_rows(self._columns, self._decode_one, values)
        newer = pa.repeat(pa.scalar(False), len(values))
        if refs & self._newer:
            newer = pa.array([value is not None and bool(_refs([value]) & self._newer) for value in values])
        return pa.StructArray.from_arrays([*found.flatten(), newer], names=["row", "reason", "newer"])

    def _decode_one(self, value: bytes) -> Any:
        if (usual := self._by_head.get(value[: schema_ids.ID_END])) is not None:
            return usual(value[schema_ids.ID_END :])
        try:
            ref, _, end = schema_ids.read_schema_id("value", value)
        except schema_ids.NoSchemaId as error:
            raise Unreadable(f"it {error}") from error
        writer = self._writers.get(ref)
        if writer is None:
            raise Unreadable(f"its schema {schema_ids.format_ref(ref)} is not in the registry")
        if isinstance(writer, str):
            raise Unreadable(f"{writer} (schema {schema_ids.format_ref(ref)})")
        return writer(value[end:])

    def _fetch_new(self, refs: set[schema_ids.SchemaRef]) -> None:
        """Fetch the schemas that are not cached: each once, and unknown ones once more."""
        now = self._clock.now()
        new = {each for each in refs - self._writers.keys() if self._unknown.get(each, now) <= now}
        unknown = [each for each in sorted(new, key=schema_ids.format_ref) if not self._add_writer(each)]
        if unknown:
            self._clock.sleep(_RETRY_S)
            for each in unknown:
                if not self._add_writer(each):
                    self._unknown[each] = self._clock.now() + _UNKNOWN_S
        for each in refs & self._writers.keys():
            self._writers.move_to_end(each)
        _shorten(self._writers, max(MAX_WRITERS, len(refs)))
        self._newer &= self._writers.keys()
        _shorten(self._unknown, max(MAX_UNKNOWN, len(refs)))

    def _add_writer(self, ref: schema_ids.SchemaRef) -> bool:
        try:
            schema = self._fetch(ref)
            if self._is_newer(schema):
                self._newer.add(ref)
            self._writers[ref] = self._reader.decoder_for(schema)
        except client.UnknownSchema:
            return False
        except (InvalidSchema, Unreadable) as error:
            self._writers[ref] = str(error)
        return True


@lru_cache(maxsize=32)
def batch_decoder(spec: ReaderSpec) -> Callable[[Sequence[bytes | None]], pa.StructArray]:
    """Return the function of this process that decodes batches."""
    reader = reader_of(spec.schema, spec.message)
    if spec.url is None:
        columns, decode = columns_of(reader.shape), reader.decoder_for(spec.schema)
        return lambda values: decode_rows(columns, decode, values)
    return registry_batches(
        client.Schemas(spec.url),
        reader,
        spec.version,
        patience_s=spec.patience_s,
        truncate=spec.truncate,
        follow=spec.follow,
    ).decode


def registry_batches(
    schemas: client.Schemas,
    reader: Reader,
    version: tuple[str, int] | None,
    *,
    patience_s: float,
    truncate: bool = False,
    follow: bool = False,
) -> Batches:
    """Return what decodes records by the schemas of a registry; `version` is that of the reader's schema.

    If it follows the versions of the subject, NewerSchema is raised with the first record of a later one.
    """
    subject, number = version or ("", 0)

    def fetch(ref: schema_ids.SchemaRef) -> ResolvedSchema:
        schema = client.retry_while_unreachable(
            f"schema {schema_ids.format_ref(ref)}", lambda: schemas.get(ref), patience_s
        )
        if follow and version is not None:
            # A producer registers a schema before it writes the first record of it. So if this id is of a
            # newer version, the registry knows that version by now.
            latest = client.retry_while_unreachable(subject, lambda: schemas.latest(subject), patience_s)
            if latest > number:
                raise client.NewerSchema(
                    f"{subject} has version {latest}, and the columns are those of version {number}: the "
                    "queries have to be restarted with it"
                )
        return schema

    def is_newer(schema: ResolvedSchema) -> bool:
        return version is not None and client.retry_while_unreachable(
            f"the versions of {subject}", lambda: schemas.is_newer(schema, subject, number), patience_s
        )

    return Batches(reader, fetch, is_newer=is_newer, truncate=truncate)


def _refs(values: Iterable[bytes | None]) -> set[schema_ids.SchemaRef]:
    given = [value for value in values if value is not None]
    heads = {value[: schema_ids.ID_END] for value in given}
    if any(head[:1] != b"\0" for head in heads):
        heads = {value[: schema_ids.FINGERPRINT_END] for value in given}
    found = set()
    for head in heads:
        try:
            found.add(schema_ids.read_schema_id("value", head)[0])
        except schema_ids.NoSchemaId:
            continue  # `_decode_one` reports it
    return found


def _shorten(cache: OrderedDict[schema_ids.SchemaRef, Any], most: int) -> None:
    while len(cache) > most:
        cache.popitem(last=False)
