"""What a person may say to `df.write.format("headrace")`, and which columns become records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pyspark.sql.types import StructType

from headrace.client.wire.security import Security
from headrace.protocol.compression import Compression
from headrace.spark.errors import InvalidOption, SparkError
from headrace.spark.options import client_settings, required_servers, security_of
from headrace.spark.producing import ACKS_ALL

BATCH_BYTES: Final = 256 * 1024
_MOST: Final = 2**31 - 1  # what a client's number may be
_OF_SPARK: Final = ("checkpointLocation", "path", "queryName")  # it hands these over, too
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
)  # a copied topic has its own, as with Spark's

Choice = TypeVar("Choice")


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
        """The options as Spark hands them over; InvalidOption names the one that is wrong."""
        client = client_settings(given, _KNOWN)
        options = {name.lower(): value for name, value in given.items()}
        acks = _chosen(client, "acks", "all", _ACKS)
        idempotent = _chosen(
            client, "enable.idempotence", str(acks == ACKS_ALL).lower(), {"true": True, "false": False}
        )
        if idempotent and acks != ACKS_ALL:
            raise InvalidOption(
                "kafka.acks",
                "less than all is not idempotent: set kafka.enable.idempotence to false",
            )
        return cls(
            bootstrap=required_servers(options.get("kafka.bootstrap.servers")),
            security=security_of(client),
            topic=_topic(options.get("topic")),
            acks=acks,
            idempotent=idempotent,
            compression=_chosen(
                client, "compression.type", "none", {each.name.lower(): each for each in Compression}
            ),
            batch_bytes=_whole(client, "batch.size", BATCH_BYTES),
            timeout_s=_whole(client, "delivery.timeout.ms", 120_000) / 1000,
        )


def check_schema(schema: StructType, options: SinkOptions) -> None:
    """UnfitSchema if rows of it cannot become records."""
    found = {each.name: each.dataType.simpleString() for each in schema.fields}
    if "value" not in found:
        raise UnfitSchema("there is no column 'value'; a record has key, value, topic, partition, headers")
    if options.topic is None and "topic" not in found:
        raise InvalidOption("topic", "say where to write, with this option or with a column 'topic'")
    for name, kind in found.items():
        if name in _OF_SOURCES:
            continue
        if name not in _FITTING:
            raise UnfitSchema(f"column {name!r} is no part of a record: drop it, or put it into the value")
        if kind not in _FITTING[name]:
            raise UnfitSchema(f"column {name!r} is {kind}, and has to be {' or '.join(_FITTING[name])}")


def _topic(name: str | None) -> str | None:
    if name is not None and not name.strip():
        raise InvalidOption("topic", "it is empty; say where to write, or leave it out for a column 'topic'")
    return name


def _chosen(client: Mapping[str, str], name: str, default: str, choices: Mapping[str, Choice]) -> Choice:
    value = client.get(name, default).strip().lower()
    if value not in choices:
        raise InvalidOption(f"kafka.{name}", f"{value!r} is none of {', '.join(choices)}")
    return choices[value]


def _whole(client: Mapping[str, str], name: str, default: int) -> int:
    value = client.get(name, str(default)).strip()
    if not value.isdecimal() or len(value) > len(str(_MOST)) or not 1 <= int(value) <= _MOST:
        raise InvalidOption(f"kafka.{name}", f"{value!r} is no whole number from 1 to {_MOST}")
    return int(value)
