"""What a declared registry has for a topic: the reader's schema, and with it the columns."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from headrace.client.errors import ClientError, Unreachable
from headrace.client.schemas.http import RegistryError
from headrace.pipeline.decoders import Decoded
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry.batches import ReaderSpec, batches
from headrace.pipeline.registry.client import Schemas
from headrace.pipeline.registry.declaring import Registry
from headrace.pipeline.registry.formats import reading
from headrace.pipeline.registry.shapes import columns_of, spark_type
from headrace.pipeline.registry.whole import Whole
from headrace.registry.formats import InvalidSchema, Schema, SchemaType

if TYPE_CHECKING:
    from pyspark.sql import Column

_TYPES: Final = {".avsc": SchemaType.AVRO, ".json": SchemaType.JSON, ".proto": SchemaType.PROTOBUF}


@dataclass(frozen=True, slots=True)
class RegistryDecoder:
    """Decodes by one reader's schema."""

    name: str  # of the schema, as people are told
    wanted: ReaderSpec
    columns: StructType
    part: str

    @property
    def label(self) -> str:
        told = ", ".join(f"{each.name} {each.dataType.simpleString()}" for each in self.columns.fields)
        return f"{self.name} ({told})"

    def framed(self, data: "Column", headers: "Column") -> "Column":
        """The data, behind what a header says of its schema: that is written as it is before the data."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        name = f"__{self.part}_schema_id"
        named = F.filter(headers, lambda each: (each["key"] == name) & each["value"].isNotNull())
        return F.coalesce(F.concat(F.get(named, F.lit(0))["value"], data), data)

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415
        from pyspark.sql.pandas.functions import arrow_udf  # noqa: PLC0415

        wanted = self.wanted

        def decode(values: pa.Array) -> pa.Array:
            return batches(wanted).decode(values.to_pylist())

        outcome = StructType([StructField("row", self.columns), StructField("reason", StringType())])
        # Spark would evaluate what is deterministic once to filter, and again for the columns.
        function = arrow_udf(decode, outcome).asNondeterministic()  # type: ignore[call-overload]
        staged = f"_decoded_{self.part}"
        row = F.col(staged)["row"]
        return Decoded(
            {name: row[name] for name in self.columns.fieldNames()},
            F.col(staged)["reason"],
            {staged: function(value)},
        )


def look_up(registry: Registry, topic: str, part: str) -> RegistryDecoder:
    """What decodes a topic's values or keys; PipelineError says what to do if nothing can."""
    name, schema = _of_file(registry.schema) if registry.schema else _of_subject(registry, topic, part)
    try:
        columns = columns_of(reading(schema, registry.message).shape)
    except PipelineError as error:
        raise PipelineError(f"{name}: {error}") from error
    kind = spark_type(columns)
    assert isinstance(kind, StructType), kind
    return RegistryDecoder(
        name=name,
        wanted=ReaderSpec(registry.url, schema, registry.message, registry.patience_s),
        columns=kind,
        part=part,
    )


def _of_file(path: str) -> tuple[str, Whole]:
    type_ = _TYPES.get(Path(path).suffix)
    if type_ is None:
        raise PipelineError(f"{path}: expected a file with a schema that ends in {', '.join(_TYPES)}")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PipelineError(f"{path} cannot be read: {error}") from error
    return f"{type_} of {path}", Whole(Schema(type_, text))


def _of_subject(registry: Registry, topic: str, part: str) -> tuple[str, Whole]:
    subject = registry.subject or _subject(topic, part)
    try:
        found, schema = Schemas(registry.url).version(subject, registry.version)
    except RegistryError as error:
        raise PipelineError(_refused(registry, subject, error)) from error
    except InvalidSchema as error:
        raise PipelineError(f"the schema of {subject} cannot be understood: {error}") from error
    except Unreachable as error:
        raise PipelineError(
            f"{error}: start it (`headrace up` has one, and says where), "
            f"or correct the address in Registry({registry.place!r})"
        ) from error
    except ClientError as error:
        raise PipelineError(str(error)) from error
    return f"{found.type} of {subject} version {found.version}", schema


def _subject(topic: str, part: str) -> str:
    if "," in topic:
        raise PipelineError(
            f"{topic} are several topics, and the columns are those of one schema: "
            'Registry(..., subject="...") says of which subject'
        )
    return f"{topic.strip()}-{part}"


def _refused(registry: Registry, subject: str, error: RegistryError) -> str:
    match error.code:
        case 40401:
            return (
                f"the registry at {registry.place} has no subject {subject}: register its schema, "
                f"`headrace schema register {subject} FILE`, or name another subject, "
                'Registry(..., subject="...")'
            )
        case 40402:
            return (
                f"the registry at {registry.place} has no version {registry.version} of {subject}: "
                f"`headrace schema list {subject}` shows which there are"
            )
        case 401 | 403 | 40101 | 40301 | 40100 | 40300:
            return (
                f"the registry at {registry.place} does not let us in: {error}; "
                'Registry("http://user:password@...") has a name and a password'
            )
    return f"the registry at {registry.place} refuses to give the schema of {subject}: {error}"
