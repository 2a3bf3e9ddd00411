"""Keys and values, decoded: by the schemas of a registry, as JSON of a given schema, or as text."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from headrace.client.errors import BadSetting
from headrace.client.schemas.location import URL, discovered, located
from headrace.client.schemas.registry import Registered, RegistryClient, RegistryError
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.registry.formats import InvalidSchema
from headrace.registry.schema_ids import HEADERS
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.batches import decode_rows, reader_of, registry_batches
from headrace.tables.registry.client import TIMEOUT_S, Schemas
from headrace.tables.registry.json_rows import json_columns
from headrace.tables.registry.reader import ResolvedSchema, Unreadable
from headrace.tables.registry.shapes import Leaf, Shape, Struct, arrow_type, columns_of

REGISTRY: Final = "registry"
TEXT: Final = "text"
PARTS: Final = ("key", "value")
POLICIES: Final = ("fail", "null", "skip")
PATIENCE_S: Final = 30.0  # for a registry that is unreachable
_NO_SUBJECT: Final = 40401

Values: TypeAlias = Sequence[bytes | None]


@dataclass(frozen=True, slots=True)
class Registry:
    """A schema registry: Registry("http://127.0.0.1:8080"), by default the one of the cluster.

    Instead of its URL, a `headrace.client.schemas.registry.RegistryClient` can be given.
    The default is schema.registry.url of the settings with which the cluster is read, then HEADRACE_REGISTRY,
    then the registry whose address brokers of Headrace know.

    The columns are those of `version` of the subject TOPIC-value, or of `subject`. Every record is decoded
    with the schema that it was written with, and becomes a row of that version.
    """

    url: str | RegistryClient | None = field(default=None, repr=False)  # may contain a password
    subject: str | None = None
    version: int | str = "latest"
    message: str | None = None  # Protobuf: the full name of the message that the columns are of
    truncate_nanoseconds: bool = False  # of times, which columns have in microseconds

    def schemas(self, connection: ConnectionSettings) -> Schemas:
        """Return the schemas of the registry, which may be that of the cluster."""
        if self.url:
            return Schemas(self.url)
        settings = dict(connection.registry)
        variable = None if settings.get(URL) else os.environ.get("HEADRACE_REGISTRY")
        found = located(settings, connection, variable) or discovered(connection)
        context = found.context()
        return Schemas(
            RegistryClient(found.url, timeout_s=TIMEOUT_S, user_info=found.user_info, context=context)
        )


Schema: TypeAlias = str | pa.Schema | pa.StructType | Registry | RegistryClient | None
"""How values are decoded: "registry" or its URL, "text", or the Arrow schema of JSON."""


class NewerSchemaWarning(UserWarning):
    """Records of a batch were written with a newer version of the schema than that of the columns."""


class Decoder(Protocol):
    """Decodes one part of records: their keys or their values."""

    @property
    def type(self) -> pa.DataType: ...

    def decode(self, values: Values) -> tuple[pa.Array, list[str | None]]:
        """Return a column, and for each row why it cannot be decoded, or None."""
        ...


@dataclass(frozen=True, slots=True)
class _Shaped:
    """Rows of a shape, with a function that returns rows and reasons."""

    shape: Shape
    rows: Callable[[Values], pa.StructArray]
    version: tuple[str, int] | None = None  # a subject of a registry and its version

    @property
    def type(self) -> pa.DataType:
        return arrow_type(self.shape)

    def decode(self, values: Values) -> tuple[pa.Array, list[str | None]]:
        found = self.rows(values)
        if self.version is not None and (count := pc.sum(found.field("newer")).as_py()):
            subject, number = self.version
            warnings.warn(
                f"{count} of {len(values)} values have a newer schema than the columns, which are those of "
                f"version {number} of {subject}: fields that were added since are not read",
                NewerSchemaWarning,
                stacklevel=2,
            )
        row = found.field("row")
        if not isinstance(self.shape, Struct):
            row = row.field(0)
        return row, found.field("reason").to_pylist()


def decoders(schema: Schema, topics: Sequence[str], connection: ConnectionSettings) -> dict[str, Decoder]:
    """Return the decoders of "key" and "value", those that `schema` asks for; BadSetting if it is invalid.

    The brokers at `connection` may be asked for their registry.
    """
    match schema:
        case None:
            return {}
        case "text":
            text = Leaf(pa.string())
            decoder = _Shaped(text, partial(decode_rows, columns_of(text), _utf8))
            return dict.fromkeys(PARTS, decoder)
        case pa.Schema() | pa.StructType():
            kind = pa.struct(list(schema))
            if not kind.num_fields:
                raise BadSetting("the schema has no fields")
            shape, decode = json_columns(kind)
            return {"value": _Shaped(shape, partial(decode_rows, columns_of(shape), decode))}
        case RegistryClient():
            return _of_registry(Registry(schema), topics, connection)
        case Registry():
            return _of_registry(schema, topics, connection)
        case str() if schema == REGISTRY or schema.startswith(("http://", "https://")):
            return _of_registry(Registry(None if schema == REGISTRY else schema), topics, connection)
    raise BadSetting(
        f'schema is "registry", the URL of a registry, "text" or a pyarrow schema, not {schema!r:.80}'
    )


def _utf8(payload: bytes) -> str:
    try:
        return payload.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"it is not UTF-8: {error}") from error


def _of_registry(
    registry: Registry, topics: Sequence[str], connection: ConnectionSettings
) -> dict[str, Decoder]:
    """Return the decoder of values and, if their subject has a schema, of keys."""
    if len(topics) != 1 and registry.subject is None:
        raise BadSetting(
            f"{', '.join(topics)} are several topics, and the columns are those of one schema: read them one "
            'by one, or name the subject, Registry(subject="...")'
        )
    schemas = registry.schemas(connection)
    by_schema = partial(_by_schema, schemas, truncate=registry.truncate_nanoseconds)
    subject = registry.subject or f"{topics[0]}-value"
    found = {"value": by_schema(subject, registry.version, registry.message)}
    if len(topics) == 1:
        try:
            found["key"] = by_schema(f"{topics[0]}-key", "latest", None)
        except NoSubject:
            return found
    return found


class Undecodable(ReadError):
    """The key or value of a record does not fit its schema, and `on_error` is "fail"."""

    def __init__(self, what: str) -> None:
        super().__init__(f'{what} (on_error="null" or "skip" would continue)')
        self.what = what


class NoSubject(ReadError):
    """The registry has no schema of this topic."""


def _schema(schemas: Schemas, subject: str, version: int | str) -> tuple[Registered, ResolvedSchema]:
    try:
        return schemas.version(subject, version)
    except RegistryError as error:
        if error.code == _NO_SUBJECT:
            raise NoSubject(
                f"the registry at {schemas.address} has no subject {subject}: register its schema, "
                f'`headrace schema register {subject} FILE`, or name another one, Registry(subject="...")'
            ) from error
        raise ReadError(
            f"the registry at {schemas.address} returns no schema of {subject}: {error}"
        ) from error
    except InvalidSchema as error:
        raise ReadError(f"the schema of {subject} cannot be parsed: {error}") from error


def _by_schema(
    schemas: Schemas, subject: str, version: int | str, message: str | None, *, truncate: bool
) -> Decoder:
    registered, schema = _schema(schemas, subject, version)
    assert registered.version is not None, registered
    number = subject, registered.version
    reader = reader_of(schema, message)
    batches = registry_batches(schemas, reader, number, patience_s=PATIENCE_S, truncate=truncate)
    return _Shaped(reader.shape, batches.decode, number)


# -- batches -----------------------------------------------------------------------------------


class BatchDecoder:
    """Decodes keys and values of batches; rows that cannot be decoded are subject to a policy."""

    def __init__(self, decoders: dict[str, Decoder], policy: str) -> None:
        self._decoders = decoders
        self._policy = policy

    def needed(self, columns: Sequence[str]) -> list[str]:
        """Return the columns that have to be read for these: a schema id may be in a header."""
        others = [] if not self._decoded(columns) else ["headers", "topic", "partition", "offset"]
        return list(dict.fromkeys([*columns, *others]))

    def _decoded(self, columns: Sequence[str]) -> list[str]:
        return [column for column in columns if column in self._decoders]

    def decode(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """Return `columns` of the batch, decoded."""
        arrays = {name: batch.column(name) for name in columns}
        bad: set[int] = set()
        for part in self._decoded(columns):
            values = _framed(part, batch)
            arrays[part], reasons = self._decoders[part].decode(values)
            wrong = [row for row, reason in enumerate(reasons) if reason is not None]
            if wrong and self._policy == "fail":
                row = wrong[0]
                names = ("topic", "partition", "offset")
                topic, partition, offset = (batch.column(name)[row].as_py() for name in names)
                where = f"{topic}-{partition} offset {offset}"
                raise Undecodable(f"the {part} of {where} cannot be decoded: {reasons[row]}")
            bad |= set(wrong)
        found = pa.RecordBatch.from_arrays(list(arrays.values()), names=list(arrays))
        if bad and self._policy == "skip":
            found = found.filter(pa.array([row not in bad for row in range(batch.num_rows)], pa.bool_()))
        return found


def _framed(part: str, batch: pa.RecordBatch) -> list[bytes | None]:
    """Return what to decode: data after the schema id of a header, if there is one, have the same format."""
    values: list[bytes | None] = batch.column(part).to_pylist()
    headers = batch.column("headers")
    if headers.null_count == len(headers):
        return values
    name = HEADERS[part].decode()
    named = pc.list_flatten(headers).field("key")
    if not pc.any(pc.equal(named, name)).as_py():
        return values
    for row, found in enumerate(headers.to_pylist()):
        ids = [each["value"] for each in found or () if each["key"] == name and each["value"] is not None]
        data = values[row]
        if ids and data is not None:
            values[row] = ids[0] + data
    return values
