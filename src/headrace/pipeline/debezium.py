"""Change events of Debezium: the columns of a database's row, what happened to it, and where in the log."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from headrace.pipeline.decoders import CORRUPT, Decoded, Decoder, Json, parsed_schema
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

    from headrace.pipeline.registry.decoder import RegistryDecoder

OPERATION: Final = "_op"  # c: insert, u: update, d: delete, r: read by a snapshot
SOURCE: Final = "_source"
_SOURCE_FIELDS: Final = (
    "connector string, name string, db string, schema string, table string, snapshot string, "
    "ts_ms bigint, ts_us bigint, ts_ns bigint, "
    "lsn bigint, "  # PostgreSQL
    "gtid string, file string, pos bigint, row int, "  # MySQL and MariaDB
    "commit_lsn string, change_lsn string, event_serial_no bigint, "  # SQL Server and Db2
    "scn string, commit_scn string"  # Oracle
)
_NUMBERS: Final = ("scn", "commit_scn")  # which Debezium writes as text: 999999 is less than 1000000
_ROW_IN: Final = {"c": "after", "u": "after", "r": "after", "d": "before"}
_MESSAGE: Final = "m"  # of PostgreSQL's pg_logical_emit_message, which is about no row


@dataclass(frozen=True, slots=True)
class Debezium:
    """Change events: Debezium(Json("id bigint, name string")), Debezium(Registry("http://127.0.0.1:8080")).

    JSON events may have Kafka Connect's wrapper of `schema` and `payload`; the schema given here is that of
    the database's row. With a registry the columns are those of `after`. Columns `_op` and `_source` are
    added. A delete has the values of `before`. Records without a value, which follow deletes, are ignored.
    """

    envelope: Json | Registry

    def settled(self, topic: str, part: str = "value") -> Decoder:
        """Return the decoder of a topic's events; PipelineError if they are not change events."""
        if isinstance(self.envelope, Json):
            return JsonEnvelope(self.envelope)
        from headrace.pipeline.registry.decoder import look_up  # noqa: PLC0415  slow to import

        return RegistryEnvelope(look_up(self.envelope, topic, part))


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """Events in JSON; `row` has the columns of the database's row."""

    row: Json

    @property
    def label(self) -> str:
        return f"Debezium, {self.row.label}"

    def decode(self, value: "Column") -> Decoded:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415
        from pyspark.sql.types import StructType  # noqa: PLC0415

        from headrace.pipeline.exactness import inexact_json  # noqa: PLC0415

        row, source = parsed_schema(self.row.schema), parsed_schema(_SOURCE_FIELDS)
        plain = StructType().add("op", "string").add("before", row).add("after", row).add("source", source)
        whole = StructType([*plain.fields]).add("payload", plain).add(CORRUPT, "string")
        options = {**self.row.options, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
        text = value.cast("string")
        parsed = F.from_json(text, whole, options)
        parts = {name: F.coalesce(parsed["payload"][name], parsed[name]) for name in plain.fieldNames()}
        wrong = value.isNotNull() & (parsed.isNull() | parsed[CORRUPT].isNotNull())
        why = F.when(F.try_parse_json(text).isNull(), "it is not JSON").otherwise(
            f"it is JSON, but not a change event of {self.row.schema}"
        )
        utf8 = F.when(value.isNotNull() & ~F.is_valid_utf8(text), "it is not UTF-8")
        lossy = inexact_json(text, StructType([*plain.fields]).add("payload", plain))
        reason = F.coalesce(utf8, F.when(wrong, why).otherwise(lossy))
        return _decoded(parts, row.fieldNames(), source, reason, absent=value.isNull())


@dataclass(frozen=True, slots=True)
class RegistryEnvelope:
    """Events whose schema is in a registry: Avro, JSON Schema or Protobuf."""

    inner: "RegistryDecoder"

    def __post_init__(self) -> None:
        missing = {"before", "after", "op", "source"} - set(self.inner.columns.fieldNames())
        if missing:
            raise PipelineError(
                f"{self.inner.name} is not the envelope of change events: it has no field {min(missing)}. "
                "If Debezium unwraps its events (ExtractNewRecordState), decode them without Debezium(...)"
            )

    @property
    def label(self) -> str:
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in self._row.fields)
        return f"Debezium, {self.inner.name} ({columns})"

    @property
    def _row(self) -> "StructType":
        return cast("StructType", self.inner.columns["after"].dataType)

    def framed(self, data: "Column", headers: "Column") -> "Column":
        return self.inner.framed(data, headers)

    def decode(self, value: "Column") -> Decoded:
        found = self.inner.decode(value)
        absent = found.columns["op"].isNull() & found.reason.isNull()
        source = self.inner.columns["source"].dataType
        decoded = _decoded(found.columns, self._row.fieldNames(), source, found.reason, absent=absent)
        return decoded._replace(staged=found.staged, newer=found.newer)


def _decoded(
    parts: "Mapping[str, Column]",
    names: Sequence[str],
    source_type: "DataType",
    reason: "Column",
    *,
    absent: "Column",
) -> Decoded:
    """Return the columns of an envelope's row; `reason` is why an envelope could not be parsed."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415
    from pyspark.sql.types import StringType, StructType  # noqa: PLC0415

    operation = parts["op"]
    row = F.when(operation == "d", parts["before"]).otherwise(parts["after"])
    why = F.when(operation.isNull(), "it is not a change event: it has no op")
    for name, place in _ROW_IN.items():
        why = why.when(
            operation == name,
            F.when(parts[place].isNull(), f"it is a change event with op {name}, and has no {place}"),
        )
    why = why.when(
        operation == "t", "the table was truncated (op t): the event names no rows, and the sinks keep theirs"
    )
    why = why.when(operation != _MESSAGE, F.concat(F.lit("it has an unknown op: "), operation))
    source = parts["source"]
    for field in source_type.fields if isinstance(source_type, StructType) else ():
        if (name := field.name) in _NUMBERS and isinstance(field.dataType, StringType):
            number = source[name].try_cast("decimal(38,0)")
            wrong = source[name].isNotNull() & number.isNull()
            why = F.coalesce(why, F.when(wrong, f"its source.{name} is not a number"))
            source = source.withField(name, number)
    columns = {name: row[name] for name in names}
    return Decoded(
        {**columns, OPERATION: operation, SOURCE: source},
        F.when(~absent, F.coalesce(reason, why)),
        skipped=F.coalesce(absent | (operation == _MESSAGE), F.lit(False)),
    )
