"""Decoders: the format of a record's bytes, the columns, and the reason for every row that does not fit."""

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast, runtime_checkable

from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column
    from pyspark.sql.types import StructType

CORRUPT: Final = "_corrupt"


class Decoded(NamedTuple):
    """The columns by name, and the reason for each row that cannot be decoded."""

    columns: "Mapping[str, Column]"
    reason: "Column"
    staged: "Mapping[str, Column]" = MappingProxyType({})  # columns that these use, evaluated first
    skipped: "Column | None" = None  # whether a record is neither a row nor a bad row
    newer: "Column | None" = None  # whether a record has a newer schema than the columns


class Decoder(Protocol):
    """A format."""

    @property
    def label(self) -> str:
        """The format, in messages."""
        ...

    def decode(self, value: "Column") -> Decoded: ...


@runtime_checkable
class Framed(Protocol):
    """A decoder that reads headers."""

    def framed(self, data: "Column", headers: "Column") -> "Column":
        """Return what to decode, made of a record's data and headers."""
        ...


@runtime_checkable
class Following(Protocol):
    """A decoder whose format may have a newer version while it is used."""

    def is_outdated(self) -> bool:
        """Return whether the queries have to be restarted with a newer version."""
        ...


@runtime_checkable
class Unsettled(Protocol):
    """A decoder that has to look up its format at the start of a run."""

    def settled(self, topic: str, part: str) -> Decoder:
        """Return the decoder of the topic's values or keys; PipelineError if there is none."""
        ...


def settle(declared: Decoder | Unsettled, topic: str, part: str = "value") -> Decoder:
    """Return the decoder for a run; `part` is "value" or "key"."""
    return declared.settled(topic, part) if isinstance(declared, Unsettled) else declared


@dataclass(frozen=True, slots=True)
class Raw:
    """The undecoded bytes, in the column `value`."""

    label: str = "bytes"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        return Decoded({"value": value}, F.lit(None).cast("string"))


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8, in the column `value`."""

    label: str = "text"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        text = value.cast("string")
        wrong = value.isNotNull() & ~F.is_valid_utf8(text)
        return Decoded({"value": text}, F.when(wrong, F.lit("it is not UTF-8")))


@dataclass(frozen=True, slots=True)
class Number:
    """A number as text, in the column `value`: Number("bigint"), Number("decimal(10,2)")."""

    kind: str = "bigint"

    @property
    def label(self) -> str:
        return self.kind

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if len(_parsed(f"value {self.kind}")) != 1:
            raise PipelineError(
                f"{self.kind!r} is not a type of Spark; expected bigint, double, decimal(10,2), ..."
            )
        from headrace.pipeline.exactness import inexact  # noqa: PLC0415

        text = F.trim(value.cast("string"))
        number = text.try_cast(self.kind)
        wrong = value.isNotNull() & number.isNull()
        lossy = inexact(text, parsed_schema(f"value {self.kind}"), F.to_json(F.struct(text.alias("value"))))
        return Decoded({"value": number}, F.when(wrong, F.lit(f"it is not a {self.kind}")).otherwise(lossy))


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON object with the fields of a schema in Spark's DDL: Json("truck string, at timestamp")."""

    schema: str
    options: "Mapping[str, str]" = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"JSON ({self.schema})"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        from headrace.pipeline.exactness import inexact_json  # noqa: PLC0415

        text = value.cast("string")
        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        parsed = F.from_json(text, f"{self.schema}, {CORRUPT} string", options)
        why = F.when(F.try_parse_json(text).isNull(), "it is not JSON").otherwise(
            f"it is JSON, but does not fit {self.schema}"
        )
        return _decoded(value, parsed, self.schema, why, inexact_json(text, parsed_schema(self.schema)))


@dataclass(frozen=True, slots=True)
class Csv:
    """A line of comma-separated values: Csv("truck string, km double"); `options` are Spark's for CSV."""

    schema: str
    options: "Mapping[str, str]" = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"CSV ({self.schema})"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        from headrace.pipeline.exactness import inexact  # noqa: PLC0415

        text, schema = value.cast("string"), parsed_schema(self.schema)
        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        parsed = F.from_csv(text, F.lit(f"{self.schema}, {CORRUPT} string"), options)
        texts = ", ".join(f"`{name}` string" for name in schema.fieldNames())
        lossy = inexact(text, schema, F.to_json(F.from_csv(text, F.lit(texts), dict(self.options))))
        return _decoded(value, parsed, self.schema, F.lit(f"it does not fit {self.schema}"), lossy)


@dataclass(frozen=True, slots=True)
class Avro:
    """A record of the schema in a file, Avro("truck.avsc"), without a container or a schema id."""

    path: str

    @property
    def label(self) -> str:
        return f"Avro ({self.path})"

    def decode(self, value: "Column") -> Decoded:
        from headrace.pipeline.registry.decoder import decode_bare_avro  # noqa: PLC0415  slow to import

        return decode_bare_avro(self.path, value)


def _decoded(value: "Column", parsed: "Column", schema: str, reason: "Column", lossy: "Column") -> Decoded:
    """Return the columns; `lossy` is why Spark has not parsed a value exactly."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    why = F.when(~F.is_valid_utf8(value.cast("string")), F.lit("it is not UTF-8"))
    why = why.when(parsed.isNull() | parsed[CORRUPT].isNotNull(), reason).otherwise(lossy)
    names = parsed_schema(schema).fieldNames()
    return Decoded({name: parsed[name] for name in names}, F.when(value.isNotNull(), why))


def parsed_schema(schema: str) -> "StructType":
    """Return the columns of a schema in Spark's DDL; PipelineError if it is not one."""
    found = _parsed(schema)
    if not found:
        raise PipelineError(f"{schema!r} is not a schema; expected NAME TYPE, NAME TYPE, ...")
    return found


def _parsed(schema: str) -> "StructType":
    """Return the columns, none if it is not a schema. Spark parses it, in a session."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    try:
        return cast("StructType", StructType.fromDDL(schema))
    except PySparkException:
        return StructType()
