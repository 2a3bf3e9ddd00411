"""The options of the sink `df.write.format("headrace")`, and the columns that become records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.types import StructType

from headrace.client.errors import why_no_topic
from headrace.protocol.compression import Compression
from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption, SparkError
from headrace.spark.kafka_settings import OF_SINKS
from headrace.spark.option_values import FLAG
from headrace.spark.options import OF_SESSIONS, ClientOptions, client_options
from headrace.spark.producer import ACKS_ALL

BATCH_BYTES: Final = 256 * 1024
_LARGEST: Final = 2**31 - 1  # of an integer setting of Kafka's clients
_OF_SPARK: Final = ("checkpointLocation", "path", "queryName")  # Spark passes these to sinks
_TRANSACTIONAL: Final = ("kafka.transactional.id", "kafka.transaction.timeout.ms")
_APPLICATION: Final = ("txnAppId", "txnVersion")
_KNOWN: Final = (
    *("kafka.bootstrap.servers", "topic", "includeHeaders", "exactlyOnce"),
    *(*_APPLICATION, *_OF_SPARK),
)
_FOR_READING: Final = "it is for reading; name the topic with the option topic"
_REFUSED: Final = {**dict.fromkeys(("subscribe", "subscribepattern", "assign"), _FOR_READING), **OF_SESSIONS}
_ACKS: Final = {"all": ACKS_ALL, "-1": ACKS_ALL, "1": 1, "0": 0}
HEADERS: Final = "array<struct<key:string,value:binary>>"
_FITTING: Final = {
    "key": ("string", "binary"),
    "value": ("string", "binary"),
    "topic": ("string",),
    "partition": ("int",),
    "headers": (HEADERS,),
}
# Columns that are ignored, as in Spark's sink: the new records have their own.
_OF_SOURCES: Final = ("offset", "timestamp", "timestampType")


class UnfitSchema(SparkError):
    """The DataFrame's columns are not those of records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions(ClientOptions):
    topic: str | None
    acks: int
    idempotent: bool
    compression: Compression
    batch_bytes: int
    timeout_s: float
    exactly_once: bool = False
    transactional_id: str | None = None  # None: by the id of the query
    transaction_timeout_ms: int | None = None  # None: by the size of the batch
    batch: Batch | None = None  # identifies a batch write that may be repeated

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "SinkOptions":
        """Return the options that Spark passes; InvalidOption names the one that is wrong."""
        options, bootstrap, client = client_options(given, _KNOWN, _REFUSED, OF_SINKS)
        acks = options.choice("kafka.acks", _ACKS, "all")
        idempotent = options.choice("kafka.enable.idempotence", FLAG, str(acks == ACKS_ALL).lower())
        if idempotent and acks != ACKS_ALL:
            why = "less than all is not idempotent: set kafka.enable.idempotence to false"
            raise InvalidOption("kafka.acks", why)
        exactly_once = options.choice("exactlyOnce", FLAG, "false")
        if exactly_once and not idempotent:
            why = "needs kafka.acks=all and kafka.enable.idempotence=true; or set it to false"
            raise InvalidOption("exactlyOnce", why)
        for name in (*_TRANSACTIONAL, *_APPLICATION):
            if name in options and not exactly_once:
                raise InvalidOption(name, "is for transactions: set exactlyOnce to true")
        application = options.parsed("txnAppId", _name, None)
        if (application is None) != ("txnVersion" not in options):
            raise InvalidOption("txnAppId", "txnAppId and txnVersion identify a write together: set both")
        version = options.integer("txnVersion", 0, least=0)
        topic = options.get("topic")
        if topic is not None and not topic.strip():
            raise InvalidOption("topic", "empty; name a topic, or leave it out for a column 'topic'")
        codecs = {codec.name.lower(): codec for codec in Compression}
        return cls(
            bootstrap=bootstrap,
            client=client,
            topic=topic,
            acks=acks,
            idempotent=idempotent,
            compression=options.choice("kafka.compression.type", codecs, "none"),
            batch_bytes=options.integer("kafka.batch.size", BATCH_BYTES, least=1, most=_LARGEST),
            timeout_s=options.integer("kafka.delivery.timeout.ms", 120_000, least=1, most=_LARGEST) / 1000,
            exactly_once=exactly_once,
            transactional_id=options.parsed("kafka.transactional.id", _name, None),
            transaction_timeout_ms=options.integer(
                "kafka.transaction.timeout.ms", None, least=1, most=_LARGEST
            ),
            batch=None if application is None else Batch(application, version),
        )


def _name(text: str) -> str:
    """Return a transactional id that the name of a staging topic can begin with."""
    if why := why_no_topic(f"{text}-staging"):
        raise ValueError(f"{text!r} cannot be part of a topic's name: {why}")
    return text


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """Raise UnfitSchema if rows of this schema cannot become records."""
    found = {field.name: field.dataType.simpleString() for field in schema.fields}
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
