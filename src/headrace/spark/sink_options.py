"""The options of the sink `df.write.format("headrace")`, and the columns that become records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from headrace.client.wire.security import Security
from headrace.protocol.compression import Compression
from headrace.spark.errors import InvalidOption, SparkError
from headrace.spark.option_values import FLAG
from headrace.spark.options import client_options
from headrace.spark.producer import ACKS_ALL

BATCH_BYTES: Final = 256 * 1024
_LARGEST: Final = 2**31 - 1  # of an integer setting of Kafka's clients
_OF_SPARK: Final = ("checkpointLocation", "path", "queryName")  # Spark passes these to sinks
_KNOWN: Final = ("kafka.bootstrap.servers", "topic", "includeHeaders", *_OF_SPARK)
_ACKS: Final = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1, "0": 0}
HEADERS: Final = "array<struct<key:string,value:binary>>"
_FITTING: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS,),
}
_OF_SOURCES: Final = (
    "offset",
    "timestamp",
    "timestampType",
)  # ignored, as in Spark's sink: the new records have their own


class UnfitSchema(SparkError):
    """The DataFrame's columns are not those of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    bootstrap: str
    security: Security
    topic: str | None
    acks: int
    idempotent: bool
    compression: Compression
    batch_bytes: int
    timeout_s: float

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SinkOptions":
        """Return the options that Spark passes; InvalidOption names the one that is wrong."""
        options, bootstrap, _, security = client_options(given, _KNOWN)
        acks = options.choice("kafka.acks", _ACKS, "all")
        idempotent = options.choice("kafka.enable.idempotence", FLAG, str(acks == ACKS_ALL).lower())
        if idempotent and acks != ACKS_ALL:
            raise InvalidOption(
                "kafka.acks",
                "less than all is not idempotent: set kafka.enable.idempotence to false",
            )
        topic = options.get("topic")
        if topic is not None and not topic.strip():
            raise InvalidOption("topic", "empty; name a topic, or leave it out for a column 'topic'")
        codecs = {each.name.lower(): each for each in Compression}
        return cls(
            bootstrap=bootstrap,
            security=security,
            topic=topic,
            acks=acks,
            idempotent=idempotent,
            compression=options.choice("kafka.compression.type", codecs, "none"),
            batch_bytes=options.integer("kafka.batch.size", BATCH_BYTES, least=1, most=_LARGEST),
            timeout_s=options.integer("kafka.delivery.timeout.ms", 120_000, least=1, most=_LARGEST) / 1000,
        )


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Raise UnfitSchema if rows of this schema cannot become records."""
    found = {each.name: each.dataType.simpleString() for each in schema.fields}
    if "value" not in found:
        raise UnfitSchema("there is no column 'value'; a record has key, value, topic, partition, headers")
    if options.topic is None and "topic" not in found:
        raise InvalidOption("topic", "missing; name the topic with this option, or in a column 'topic'")
    for name, kind in found.items():
        if name in _OF_SOURCES:
            continue
        if name not in _FITTING:
            raise UnfitSchema(f"column {name!r} is not part of a record: drop it, or put it into the value")
        if kind not in _FITTING[name]:
            raise UnfitSchema(f"column {name!r} is {kind}, expected {' or '.join(_FITTING[name])}")
