"""What a person may say to `format("headrace")`: the options of Spark's Kafka source, checked before use."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from headrace.client.errors import WrongSetting
from headrace.client.wire.security import Security
from headrace.protocol.ids import TopicPartition
from headrace.spark.cluster import CLIENT_ID
from headrace.spark.errors import InvalidOption
from headrace.spark.offsets import EARLIEST, LATEST, parse, parse_assignment
from headrace.spark.position import Position

Parsed = TypeVar("Parsed")

_SERVERS: Final = "kafka.bootstrap.servers"
_FETCH_BYTES: Final = "kafka.max.partition.fetch.bytes"
_SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")
_BOUNDS: Final = tuple(
    f"{end}{what}"
    for end in ("starting", "ending")
    for what in ("Offsets", "OffsetsByTimestamp", "Timestamp")
)
_KNOWN: Final = (
    _SERVERS,
    *_SELECTIONS,
    *_BOUNDS,
    "initialOffsets",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "minPartitions",
    "maxRecordsPerPartition",
    "failOnDataLoss",
    "includeHeaders",
    "isolation.level",
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
_BY_LOWER: Final = {name.lower(): name for name in _KNOWN}
_NOT_OURS: Final = {
    "kafka.auto.offset.reset": "say where to begin with startingOffsets",
    "kafka.key.deserializer": "keys are bytes; decode them with functions on the column",
    "kafka.value.deserializer": "values are bytes; decode them with functions on the column",
    "kafka.key.serializer": "keys are bytes; encode them with functions on the column",
    "kafka.value.serializer": "values are bytes; encode them with functions on the column",
    "kafka.enable.auto.commit": "progress is kept in the query's checkpoint",
    "kafka.interceptor.classes": "there is no Java class that could be called",
    "kafka.partitioner.class": "there is no Java class that could be called; use a column 'partition'",
    "kafka.transactional.id": "there are no transactions yet",
}
_NOWHERE: Final[dict[TopicPartition, int]] = {}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_LARGEST: Final = 2**63 - 1
_DURATION: Final = re.compile(r"(\d+)\s*(ms|s|m|min|h|d)")
_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which partitions to read: those of some topics, of topics whose name matches, or just these."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics that match {self.pattern}"
        return ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Where reading begins or ends: offsets of partitions, and what holds for those that are not named."""

    option: str
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int | None = None
    otherwise: int | None = None  # LATEST or EARLIEST; None: every partition must be named
    late: int | None = None  # for a timestamp after the last record: LATEST, or None: that is an error

    @property
    def is_latest(self) -> bool:
        """Whether it is the end of every partition."""
        return self.timestamp is None and not self.timestamps and self.otherwise == LATEST

    @property
    def has_latest(self) -> bool:
        """Whether it is the end of some partition."""
        return self.is_latest or LATEST in self.offsets.values()

    @property
    def depends_on_now(self) -> bool:
        """Whether it may be another offset whenever somebody asks."""
        return self.has_latest or self.timestamp is not None or bool(self.timestamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    bootstrap: str
    security: Security
    client: Mapping[str, str] = field(repr=False)  # the kafka.* settings, without that prefix; secrets, too
    selection: Selection
    starting: Bound
    ending: Bound
    initial: Position | None = None  # where a new query begins, instead of `starting`
    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_s: float = 900.0
    min_partitions: int = 0
    max_records: int = 0
    fail_on_data_loss: bool = True
    read_committed: bool = False
    retries: int = 3
    retry_s: float = 1.0

    @property
    def client_id(self) -> str:
        return self.client.get("client.id", CLIENT_ID)

    @property
    def group(self) -> str | None:
        """The consumer group that is told how far a query has come, if one is named."""
        return self.client.get("group.id")

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool) -> "SourceOptions":
        """The options as Spark hands them over; InvalidOption names the one that is wrong."""
        client = client_settings(given, _KNOWN)
        _number({f"kafka.{name}": value for name, value in client.items()}, _FETCH_BYTES, None, least=1)
        known = ((_BY_LOWER.get(name.lower()), value) for name, value in given.items())
        options = {name: value for name, value in known if name is not None}
        bootstrap = required_servers(options.get(_SERVERS))
        _flag(options, "includeHeaders", default=False)  # its meaning is in the schema
        if streaming:
            for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
                if name in options:
                    raise InvalidOption(name, "a stream has no end; use it with spark.read, or leave it out")
        return cls(
            bootstrap=bootstrap,
            security=security_of(client),
            client=client,
            selection=_selection(options),
            starting=_starting(options, streaming=streaming),
            ending=_ending(options),
            initial=_initial(options, streaming=streaming),
            max_offsets=_number(options, "maxOffsetsPerTrigger", None, least=1),
            min_offsets=_number(options, "minOffsetsPerTrigger", None, least=1),
            max_delay_s=_parsed(options, "maxTriggerDelay", _duration, 900.0),
            min_partitions=_number(options, "minPartitions", 0, least=1),
            max_records=_number(options, "maxRecordsPerPartition", 0, least=1),
            fail_on_data_loss=_flag(options, "failOnDataLoss", default=True),
            read_committed=_isolation(options.get("isolation.level", client.get("isolation.level"))),
            retries=_number(options, "fetchOffset.numRetries", 3, least=0),
            retry_s=_number(options, "fetchOffset.retryIntervalMs", 1000, least=0) / 1000,
        )


# -- what sources and sinks have in common -----------------------------------------------------


def client_settings(given: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    """The kafka.* settings among `given`; InvalidOption if anything else is not `known`."""
    names = {name.lower() for name in known}
    client: dict[str, str] = {}
    for name, value in given.items():
        lower = name.lower()
        if lower in _NOT_OURS:
            raise InvalidOption(name, f"it cannot be set: {_NOT_OURS[lower]}")
        if lower.startswith("kafka."):
            client[lower.removeprefix("kafka.")] = value
        elif lower not in names:
            close = difflib.get_close_matches(lower, [*names, "kafka.bootstrap.servers"], 1)
            meant = next((each for each in known if close and each.lower() == close[0]), None)
            hint = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}, and kafka.*"
            raise InvalidOption(name, f"there is no such option; {hint}")
    return client


def required_servers(servers: str | None) -> str:
    if not servers or not servers.strip():
        raise InvalidOption(_SERVERS, "it is missing; say where a broker is, as in 127.0.0.1:9092")
    for address in servers.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
            raise InvalidOption(_SERVERS, f"{address.strip()!r} is no address; expected HOST:PORT,HOST:PORT")
    return servers


def security_of(client: Mapping[str, str]) -> Security:
    try:
        return Security.of(client)
    except WrongSetting as error:
        raise InvalidOption(f"kafka.{error.setting}", error.why) from error


# -- one by one --------------------------------------------------------------------------------


def _selection(options: Mapping[str, str]) -> Selection:
    named = [name for name in _SELECTIONS if name in options]
    if len(named) != 1:
        said = " and ".join(named) or "none of them is there"
        raise InvalidOption(
            named[-1] if named else "subscribe",
            f"exactly one of subscribe, subscribePattern and assign says what to read; {said}",
        )
    name = named[0]
    value = options[name]
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
        if not topics:
            raise InvalidOption(name, "no topic is named; expected TOPIC,TOPIC")
        return Selection(topics=topics)
    if name == "subscribePattern":
        try:
            re.compile(value)
        except re.error as error:
            raise InvalidOption(name, f"{value!r} is no regular expression: {error}") from error
        return Selection(pattern=value)
    return Selection(partitions=tuple(_parsed(options, name, parse_assignment, [])))


def _starting(options: Mapping[str, str], *, streaming: bool) -> Bound:
    default = LATEST if streaming else EARLIEST
    strategy = options.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in {"error", "latest"}:
        raise InvalidOption("startingOffsetsByTimestampStrategy", f"{strategy!r} is neither error nor latest")
    late = LATEST if strategy == "latest" else None
    bound = _bound(options, "starting", default, late)
    if not streaming and (bound.otherwise == LATEST or LATEST in bound.offsets.values()):
        raise InvalidOption(bound.option, "a batch cannot start at the latest offset: it would be empty")
    return bound


def _initial(options: Mapping[str, str], *, streaming: bool) -> Position | None:
    if "initialOffsets" in options and not streaming:
        raise InvalidOption("initialOffsets", "it is for streams; a batch begins at startingOffsets")
    return _parsed(options, "initialOffsets", _position, None)


def _position(text: str) -> Position:
    for partition, offset in parse(text).items():
        if offset < 0:
            raise ValueError(f"{offset} of {partition} is no offset of a record; expected 0 or more")
    return Position.from_json(json.loads(text))


def _ending(options: Mapping[str, str]) -> Bound:
    bound = _bound(options, "ending", LATEST, LATEST)
    if bound.otherwise == EARLIEST or EARLIEST in bound.offsets.values():
        raise InvalidOption(bound.option, "a batch cannot end at the earliest offset: it would be empty")
    return bound


def _bound(options: Mapping[str, str], end: str, default: int, late: int | None) -> Bound:
    """Of the three ways to say where, a timestamp for all comes first, as in Spark's Kafka source."""
    at, by_timestamp, offsets = f"{end}Timestamp", f"{end}OffsetsByTimestamp", f"{end}Offsets"
    if at in options:
        return Bound(option=at, timestamp=_number(options, at, 0, least=0), otherwise=default, late=late)
    if by_timestamp in options:
        times = _parsed(options, by_timestamp, parse, _NOWHERE)
        for partition, time in times.items():
            if time < 0:
                raise InvalidOption(by_timestamp, f"{time} of {partition} is no timestamp in milliseconds")
        return Bound(option=by_timestamp, timestamps=times, late=late)
    text = options.get(offsets)
    if text is None:
        return Bound(option=offsets, otherwise=default)
    if text.strip().lower() in {"earliest", "latest"}:
        return Bound(option=offsets, otherwise=EARLIEST if text.strip().lower() == "earliest" else LATEST)
    return Bound(option=offsets, offsets=_parsed(options, offsets, _offsets, _NOWHERE))


def _offsets(text: str) -> dict[TopicPartition, int]:
    if not text.strip().startswith("{"):
        raise ValueError(f'{text!r} is neither earliest nor latest nor JSON as in {{"topic": {{"0": 17}}}}')
    return parse(text)


def _isolation(level: str | None) -> bool:
    if level is None or level.lower() == "read_uncommitted":
        return False
    if level.lower() == "read_committed":
        return True
    raise InvalidOption("isolation.level", f"{level!r} is neither read_uncommitted nor read_committed")


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        raise ValueError(f"{text!r} is no duration; expected a number and a unit, as in 30s or 15m")
    return int(found[1]) * _SECONDS[found[2]]


def _number(options: Mapping[str, str], name: str, default: Any, *, least: int) -> Any:
    def number(text: str) -> int:
        if not _INTEGER.fullmatch(text.strip()) or not least <= int(text) <= _LARGEST:
            raise ValueError(f"{text!r} is no whole number from {least} on")
        return int(text)

    return _parsed(options, name, number, default)


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name, str(default)).strip().lower()
    if text not in {"true", "false"}:
        raise InvalidOption(name, f"{text!r} is neither true nor false")
    return text == "true"


def _parsed(options: Mapping[str, str], name: str, parse: Callable[[str], Parsed], default: Parsed) -> Parsed:
    if name not in options:
        return default
    try:
        return parse(options[name])
    except ValueError as error:
        raise InvalidOption(name, str(error)) from error
