"""The decoder of a topic: the reader's schema is looked up on the driver, and determines the columns."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from headrace.client.errors import ClientError, Unreachable
from headrace.client.schemas.registry import Registered, RegistryError
from headrace.pipeline.decoders import Decoded
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry import Registry
from headrace.registry.formats import InvalidSchema, Schema, SchemaType
from headrace.registry.formats.avro.avro import AvroSchema
from headrace.registry.schema_ids import HEADERS
from headrace.tables.reader.errors import ReadError
from headrace.tables.registry.batches import ReaderSpec, batch_decoder, reader_of
from headrace.tables.registry.client import NewerSchema, Schemas, retry_while_unreachable
from headrace.tables.registry.reader import ResolvedSchema
from headrace.tables.registry.shapes import arrow_type, columns_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql._typing import UserDefinedFunctionLike

_TYPES: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON, ".proto": SchemaType.PROTOBUF}


@dataclass(frozen=True, slots=True)
class RegistryDecoder:
    """Decodes by one reader's schema."""

    name: str  # of the schema, in messages
    spec: ReaderSpec
    columns: StructType
    part: str

    @property
    def label(self) -> str:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in self.columns.fields)
        return f"{self.name} ({columns})"

    def is_outdated(self) -> bool:
        """Return whether a version is to be followed that is newer than that of the columns."""
        if self.spec.url is None or self.spec.version is None or not self.spec.follow:
            return False
        subject, version = self.spec.version
        schemas = Schemas(self.spec.url)
        with pipeline_errors():
            latest = retry_while_unreachable(subject, lambda: schemas.latest(subject), self.spec.patience_s)
        return latest > version

    def framed(self, data: "Column", headers: "Column") -> "Column":
        """Return the data after the schema id of a header, if there is one: both have the same format."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        name = HEADERS[self.part].decode()
        named = F.filter(headers, lambda header: (header["key"] == name) & header["value"].isNotNull())
        return F.coalesce(F.concat(F.get(named, F.lit(0))["value"], data), data)

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        # Spark would evaluate a deterministic function once to filter, and again for the columns.
        function = decoder_function(self.spec, self.columns).asNondeterministic()
        staged = f"_decoded_{self.part}"
        row = F.col(staged)["row"]
        return Decoded(
            {name: row[name] for name in self.columns.fieldNames()},
            F.col(staged)["reason"],
            {staged: function(value)},
            newer=F.col(staged)["newer"],
        )


@contextmanager
def pipeline_errors() -> Iterator[None]:
    """Raise PipelineError, after which a query is not restarted, instead of the reader's errors.

    NewerSchema stays as it is: the query is restarted, with the newer schema.
    """
    try:
        yield
    except NewerSchema:
        raise
    except ReadError as error:
        raise PipelineError(str(error)) from error


def decoder_function(spec: ReaderSpec, columns: StructType) -> "UserDefinedFunctionLike":
    """Return a function of a column of bytes, whose values are structs of `row` and `reason`.

    If the records have schema ids, a third field, `newer`, says whether the schema is newer than the columns.
    """
    from pyspark.sql.pandas.functions import arrow_udf  # noqa: PLC0415

    def decode(values: pa.Array) -> pa.Array:
        with pipeline_errors():
            return batch_decoder(spec)(values.to_pylist())

    outcome = StructType([StructField("row", columns), StructField("reason", StringType())])
    if spec.url is not None:
        outcome = outcome.add("newer", BooleanType())
    return arrow_udf(decode, outcome)  # type: ignore[call-overload, no-any-return]


def columns_of_schema(schema: ResolvedSchema, message: str | None = None) -> StructType:
    """Return the columns of a schema; PipelineError if it cannot be parsed."""
    with pipeline_errors():
        shape = columns_of(reader_of(schema, message).shape)
    kind = from_arrow_type(arrow_type(shape), prefer_timestamp_ntz=True)
    assert isinstance(kind, StructType), kind
    return kind


def look_up(registry: Registry, topic: str, part: str) -> RegistryDecoder:
    """Return the decoder of a topic's values or keys; PipelineError says what to do if there is none."""
    version: tuple[str, int] | None = None
    if registry.schema:
        type_ = _TYPES.get(Path(registry.schema).suffix)
        if type_ is None:
            expected = f"expected a file with a schema that ends in {', '.join(_TYPES)}"
            raise PipelineError(f"{registry.schema}: {expected}")
        name, schema = f"{type_} of {registry.schema}", _read(registry.schema, type_)
    else:
        found, schema = _of_subject(registry, topic, part)
        name = f"{found.type} of {found.subject} version {found.version}"
        assert found.subject is not None, found
        assert found.version is not None, found
        version = found.subject, found.version
    try:
        columns = columns_of_schema(schema, registry.message)
    except PipelineError as error:
        raise PipelineError(f"{name}: {error}") from error
    spec = ReaderSpec(
        registry.url,
        schema,
        registry.message,
        registry.patience_s,
        truncate=registry.truncate_nanoseconds,
        version=version,
        follow=registry.follow,
    )
    return RegistryDecoder(name=name, spec=spec, columns=columns, part=part)


def decode_bare_avro(path: str, value: "Column") -> Decoded:
    """Decode values that are Avro records of the schema in a file, without a schema id."""
    schema = _read(path, SchemaType.AVRO)
    try:
        columns = columns_of_schema(schema)
    except PipelineError as error:
        raise PipelineError(f"{path}: {error}") from error
    parsed = schema.parsed()
    assert isinstance(parsed, AvroSchema), parsed
    if parsed.root.kind != "record":
        raise PipelineError(f"{path}: the Avro schema has type {parsed.root.kind}, expected record")
    found = decoder_function(ReaderSpec(None, schema), columns)(value)
    return Decoded({name: found["row"][name] for name in columns.fieldNames()}, found["reason"])


def _read(path: str, type_: SchemaType) -> ResolvedSchema:
    try:
        return ResolvedSchema(Schema(type_, Path(path).read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} cannot be read: {error}") from error


def _of_subject(registry: Registry, topic: str, part: str) -> tuple[Registered, ResolvedSchema]:
    if registry.subject is None and "," in topic:
        raise PipelineError(
            f"{topic} are several topics, and the columns are those of one schema: "
            'name its subject, Registry(..., subject="...")'
        )
    subject = registry.subject or f"{topic.strip()}-{part}"
    try:
        return Schemas(registry.url).version(subject, registry.version)
    except RegistryError as error:
        raise PipelineError(_refusal(registry, subject, error)) from error
    except InvalidSchema as error:
        raise PipelineError(f"the schema of {subject} cannot be parsed: {error}") from error
    except Unreachable as error:
        raise PipelineError(
            f"{error}: start it (`headrace up` has one, and prints its address), "
            f"or correct the address in Registry({registry.address!r})"
        ) from error
    except ClientError as error:
        raise PipelineError(str(error)) from error


def _refusal(registry: Registry, subject: str, error: RegistryError) -> str:
    match error.code:
        case 40401:
            return (
                f"the registry at {registry.address} has no subject {subject}: register its schema, "
                f"`headrace schema register {subject} FILE`, or name another subject, "
                'Registry(..., subject="...")'
            )
        case 40402:
            return (
                f"the registry at {registry.address} has no version {registry.version} of {subject}: "
                f"`headrace schema list {subject}` lists its versions"
            )
        case 401 | 403 | 40101 | 40301 | 40100 | 40300:
            return (
                f"the registry at {registry.address} denies access: {error}; "
                'give a name and a password, Registry("http://user:password@...")'
            )
    return f"the registry at {registry.address} refuses to return the schema of {subject}: {error}"
