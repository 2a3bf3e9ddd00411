"""From a record's bytes to columns: a declared format, and for every row that is not of it, the reason."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast, runtime_checkable

from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column

_CORRUPT: Final = "_corrupt"


class Decoded(NamedTuple):
    """What becomes of the column `value`: columns by name, and a reason where it cannot be decoded."""

    columns: "Mapping[str, Column]"
    reason: "Column"
    staged: "Mapping[str, Column]" = MappingProxyType({})  # what those use, to be worked out once, before


class Decoder(Protocol):
    """Knows a format."""

    @property
    def label(self) -> str:
        """As people are told."""
        ...

    def decode(self, value: "Column") -> Decoded: ...


@runtime_checkable
class Framed(Protocol):
    """A decoder that headers may tell something."""

    def framed(self, data: "Column", headers: "Column") -> "Column":
        """What it decodes, of a record's data and headers."""
        ...


@runtime_checkable
class Unsettled(Protocol):
    """Has to look something up before it knows a format: what it finds counts for one run."""

    def settled(self, topic: str, part: str) -> Decoder:
        """What decodes the topic's values or keys; PipelineError if that cannot be found out."""
        ...


def settle(declared: Decoder | Unsettled, topic: str, part: str = "value") -> Decoder:
    """The decoder for a run; `part` is "value" or "key"."""
    return declared.settled(topic, part) if isinstance(declared, Unsettled) else declared


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, in the column `value`: nothing is decoded, so nothing can be wrong."""

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
        return Decoded({"value": text}, F.when(wrong, F.lit("it is no UTF-8")))


@dataclass(frozen=True, slots=True)
class Number:
    """A number as text, in the column `value`: Number("bigint"), Number("decimal(10,2)")."""

    kind: str = "bigint"

    @property
    def label(self) -> str:
        return self.kind

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if len(_names(f"value {self.kind}")) != 1:
            raise PipelineError(f"{self.kind!r} is no type of Spark's: bigint, double, decimal(10,2), ...")
        number = F.trim(value.cast("string")).try_cast(self.kind)
        wrong = value.isNotNull() & number.isNull()
        return Decoded({"value": number}, F.when(wrong, F.lit(f"it is no {self.kind}")))


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON object with the fields of a schema in Spark's words: Json("truck string, at timestamp")."""

    schema: str
    options: "Mapping[str, str]" = field(default_factory=dict)

    @property
    def label(self) -> str:
        return f"JSON ({self.schema})"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        text = value.cast("string")
        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = F.from_json(text, f"{self.schema}, {_CORRUPT} string", options)
        wrong = value.isNotNull() & (parsed.isNull() | parsed[_CORRUPT].isNotNull())
        why = F.when(F.try_parse_json(text).isNull(), "it is no JSON").otherwise(
            f"it is JSON, and does not fit {self.schema}"
        )
        return Decoded({name: parsed[name] for name in _fields(self.schema)}, F.when(wrong, why))


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

        options = {**self.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
        parsed = F.from_csv(value.cast("string"), F.lit(f"{self.schema}, {_CORRUPT} string"), options)
        wrong = value.isNotNull() & (parsed.isNull() | parsed[_CORRUPT].isNotNull())
        reason = F.when(wrong, F.lit(f"it is no line of {self.schema}"))
        return Decoded({name: parsed[name] for name in _fields(self.schema)}, reason)


@dataclass(frozen=True, slots=True)
class Avro:
    """A record of the schema in a file, bare, as Avro("truck.avsc"): no container, no registry's id."""

    path: str

    @property
    def label(self) -> str:
        return f"Avro ({self.path})"

    def decode(self, value: "Column") -> Decoded:
        from headrace.pipeline.avro import decoder  # noqa: PLC0415

        try:
            schema = json.loads(Path(self.path).read_text())
        except (OSError, json.JSONDecodeError) as error:
            raise PipelineError(f"{self.path} is no Avro schema: {error}") from error
        function, names = decoder(schema)
        found = function(value)
        return Decoded({name: found["row"][name] for name in names}, found["reason"])


def _fields(schema: str) -> list[str]:
    found = _names(schema)
    if not found:
        raise PipelineError(f"{schema!r} is no schema; expected NAME TYPE, NAME TYPE, ...")
    return found


def _names(schema: str) -> list[str]:
    """The names of the fields; none if it is no schema. Spark is asked, which needs a session."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.types import StructType  # noqa: PLC0415

    try:
        return [each.name for each in cast("StructType", StructType.fromDDL(schema)).fields]
    except PySparkException:
        return []
