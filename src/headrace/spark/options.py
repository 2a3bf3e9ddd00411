"""The options of the source `format("headrace")`: those of Spark's Kafka source, checked before use."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.client.errors import WrongSetting
from headrace.client.wire.config_providers import resolve
from headrace.client.wire.security import Security
from headrace.protocol.ids import TopicPartition
from headrace.spark.errors import InvalidOption, on_loss
from headrace.spark.kafka_settings import OF_SOURCES, PREFIX, check_names, warn_once
from headrace.spark.offsets import parse, parse_assignment
from headrace.spark.option_values import FLAG, Options, parse_duration_s
from headrace.spark.patterns import topic_pattern
from headrace.spark.position import Position
from headrace.tables.reader.fetcher import FETCH_BYTES, FETCH_WAIT_MS, POLL_TIMEOUT_S, FetchOptions
from headrace.tables.reader.offsets import EARLIEST, LATEST

CLIENT_ID: Final = "headrace-spark"
DEFAULT_MAX_OFFSETS: Final = 2_000_000  # of a micro-batch: a few seconds' work at full speed
NO_LIMIT: Final = "none"
_SERVERS: Final = "kafka.bootstrap.servers"
_POLL_TIMEOUT_MS: Final = int(POLL_TIMEOUT_S * 1000)
_SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")
_BOUNDS: Final = tuple(
    f"{end}{what}"
    for end in ("starting", "ending")
    for what in ("Offsets", "OffsetsByTimestamp", "Timestamp")
)
_OF_STREAMS: Final = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_KNOWN: Final = (
    *(_SERVERS, *_SELECTIONS, *_BOUNDS, "initialOffsets", "startingOffsetsByTimestampStrategy"),
    *(*_OF_STREAMS, "minPartitions", "maxRecordsPerPartition", "failOnDataLoss", "includeHeaders"),
    *("isolation.level", "groupIdPrefix", "fetchOffset.numRetries", "fetchOffset.retryIntervalMs"),
    "kafkaConsumer.pollTimeoutMs",
)
OF_SESSIONS: Final = dict.fromkeys(
    ("spark.kafka.", "spark.sql.streaming.kafka."),
    "it is a setting of the Spark session for Spark's own connector, and has no effect here",
)
_REFUSED: Final = {"topic": "it is for writing; use subscribe, subscribePattern or assign", **OF_SESSIONS}
_ISOLATION: Final = {"read_uncommitted": False, "read_committed": True}
_NOWHERE: Final[dict[TopicPartition, int]] = {}
_SECURITY: Final = ("sasl.", "ssl.", "security.", "enable.ssl.")
_MAX_INT: Final = 2**31 - 1  # of an integer setting of Kafka's clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The partitions to read: of named topics, of topics that match a pattern, or named partitions."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"topics that match {self.pattern}"
        return ", ".join(self.topics) or ", ".join(map(str, self.partitions))


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """The start or end of a read: offsets or timestamps of partitions, and the default for the others."""

    option: str
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamps: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp: int | None = None
    otherwise: int | None = None  # LATEST or EARLIEST; None: every partition must be named
    late: int | None = None  # for a timestamp after the last record: LATEST; None is an error

    @property
    def is_latest(self) -> bool:
        """Whether the bound is the end of every partition."""
        return self.timestamp is None and not self.timestamps and self.otherwise == LATEST

    @property
    def has_latest(self) -> bool:
        """Whether the bound is the end of some partition."""
        return self.is_latest or LATEST in self.offsets.values()

    @property
    def depends_on_now(self) -> bool:
        """Whether the bound may be another offset at another time."""
        return self.has_latest or self.timestamp is not None or bool(self.timestamps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The options of sources and sinks alike: which cluster, and how to connect to it."""

    bootstrap: str
    client: Mapping[str, str] = field(repr=False)  # the kafka.* settings without that prefix

    @property
    def security(self) -> Security:
        return security_of(self.client)

    @property
    def client_id(self) -> str:
        return self.client.get("client.id", CLIENT_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions(ClientOptions):
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
    poll_timeout_s: float = POLL_TIMEOUT_S
    fetch_wait_ms: int = FETCH_WAIT_MS
    fetch_bytes: int = FETCH_BYTES

    @property
    def fetching(self) -> FetchOptions:
        """Return how tasks fetch their ranges."""
        return FetchOptions(
            read_committed=self.read_committed,
            max_bytes=self.fetch_bytes,
            max_wait_ms=self.fetch_wait_ms,
            timeout_s=self.poll_timeout_s,
            rack=self.client.get("client.rack", ""),
            on_loss=on_loss(fails=self.fail_on_data_loss),
        )

    @classmethod
    def of(cls, given: Mapping[str, str], *, streaming: bool) -> "SourceOptions":
        """Return the options that Spark passes; InvalidOption names the one that is wrong."""
        options, bootstrap, client = client_options(given, _KNOWN, _REFUSED, OF_SOURCES)
        options.choice("includeHeaders", FLAG, "false")  # it changes the schema, see HeadraceSource.schema
        if streaming:
            for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
                if name in options:
                    raise InvalidOption(name, "a stream has no end; use it with spark.read, or leave it out")
        for name in _OF_STREAMS:
            if name in options and not streaming:
                warn_once(f"option {name} has no effect: it is for streams")
        if "groupIdPrefix" in options:
            warn_once("option groupIdPrefix has no effect: a query is not a member of a group")
        isolation = "isolation.level" if "isolation.level" in options else "kafka.isolation.level"
        late = options.choice(
            "startingOffsetsByTimestampStrategy", {"error": None, "latest": LATEST}, "error"
        )
        starting = _bound(options, "starting", LATEST if streaming else EARLIEST, late)
        ending = _bound(options, "ending", LATEST, LATEST)
        if not streaming:
            _check_order(starting, ending)
            if "initialOffsets" in options:
                why = "only streams have it; a batch begins at startingOffsets"
                raise InvalidOption("initialOffsets", why)
        min_offsets = options.integer("minOffsetsPerTrigger", None, least=1)
        # A backlog is read in several micro-batches, unless the option is `none`.
        default = max(DEFAULT_MAX_OFFSETS, min_offsets or 1)
        unlimited = (options.get("maxOffsetsPerTrigger") or "").strip().lower() == NO_LIMIT
        max_offsets = None if unlimited else options.integer("maxOffsetsPerTrigger", default, least=1)
        if max_offsets is not None and min_offsets is not None and min_offsets > max_offsets:
            why = f"{min_offsets} is more than maxOffsetsPerTrigger, {max_offsets}"
            raise InvalidOption("minOffsetsPerTrigger", why)
        return cls(
            bootstrap=bootstrap,
            client=client,
            selection=_selection(options),
            starting=starting,
            ending=ending,
            initial=options.parsed("initialOffsets", _position, None),
            max_offsets=max_offsets,
            min_offsets=min_offsets,
            max_delay_s=options.parsed("maxTriggerDelay", parse_duration_s, 900.0),
            min_partitions=options.integer("minPartitions", 0, least=1),
            max_records=options.integer("maxRecordsPerPartition", 0, least=1),
            fail_on_data_loss=options.choice("failOnDataLoss", FLAG, "true"),
            read_committed=options.choice(isolation, _ISOLATION, "read_uncommitted"),
            retries=options.integer("fetchOffset.numRetries", 3, least=0),
            retry_s=options.integer("fetchOffset.retryIntervalMs", 1000, least=0) / 1000,
            poll_timeout_s=options.integer("kafkaConsumer.pollTimeoutMs", _POLL_TIMEOUT_MS, least=1) / 1000,
            fetch_wait_ms=options.integer("kafka.fetch.max.wait.ms", FETCH_WAIT_MS, least=0, most=_MAX_INT),
            fetch_bytes=min(
                options.integer("kafka.max.partition.fetch.bytes", FETCH_BYTES, least=1),
                options.integer("kafka.fetch.max.bytes", _MAX_INT, least=1),
                _MAX_INT,
            ),
        )


def client_options(
    given: Mapping[str, str], known: tuple[str, ...], refused: Mapping[str, str], obeyed: frozenset[str]
) -> tuple[Options, str, dict[str, str]]:
    """Return the options, the bootstrap servers, and the kafka.* settings without the prefix.

    `refused` has reasons for names that cannot be set, and `obeyed` the kafka.* settings with an effect.
    """
    options = Options(given, known, prefix=PREFIX, refused=refused)
    check_names(options.below(PREFIX), obeyed)
    # Security may have secrets, which must not be part of a plan: every process resolves them for itself.
    plain = {name: value for name, value in options.below(PREFIX).items() if not name.startswith(_SECURITY)}
    try:
        resolved = resolve(plain)
    except WrongSetting as error:
        raise InvalidOption(PREFIX + error.setting, error.why) from None
    options.resolve({PREFIX + name: value for name, value in resolved.items() if value != plain[name]})
    servers = options.get(_SERVERS) or ""
    if not servers.strip():
        raise InvalidOption(_SERVERS, "missing; expected HOST:PORT,HOST:PORT, as in 127.0.0.1:9092")
    for address in servers.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) < 65536):
            raise options.wrong(
                _SERVERS, f"{address.strip()!r} is not an address; expected HOST:PORT,HOST:PORT"
            )
    client = options.below(PREFIX)
    security_of(client)
    return options, servers, client


def security_of(client: Mapping[str, str]) -> Security:
    """Return the security of connections; InvalidOption names the setting that is wrong."""
    try:
        return Security.of(client)
    except WrongSetting as error:
        raise InvalidOption(PREFIX + error.setting, error.why) from error


def _selection(options: Options) -> Selection:
    named = [name for name in _SELECTIONS if name in options]
    if len(named) != 1:
        found = " and ".join(named) or "none of them"
        why = f"expected exactly one of subscribe, subscribePattern and assign, not {found}"
        raise InvalidOption(named[-1] if named else "subscribe", why)
    name = named[0]
    value = options.get(name) or ""
    if name == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in value.split(",") if topic.strip()))
        if not topics:
            raise InvalidOption(name, "no topic is named; expected TOPIC,TOPIC")
        return Selection(topics=topics)
    if name == "subscribePattern":
        pattern = value.strip()
        if not pattern:
            raise InvalidOption(name, "empty; expected a regular expression, as in orders-.*")
        try:
            topic_pattern(pattern)
        except ValueError as error:
            raise InvalidOption(name, f"{pattern!r} cannot be matched: {error}") from error
        return Selection(pattern=pattern)
    return Selection(partitions=tuple(options.parsed(name, parse_assignment, [])))


def _check_order(starting: Bound, ending: Bound) -> None:
    """Raise InvalidOption if a batch would be empty: if a partition is read to its start, or before."""
    if starting.otherwise == LATEST or LATEST in starting.offsets.values():
        raise InvalidOption(starting.option, "a batch cannot start at the latest offset: it would be empty")
    if ending.otherwise == EARLIEST or EARLIEST in ending.offsets.values():
        raise InvalidOption(ending.option, "a batch cannot end at the earliest offset: it would be empty")
    for first, last in ((starting.offsets, ending.offsets), (starting.timestamps, ending.timestamps)):
        if not (first and last):
            continue
        if first.keys() != last.keys():
            unmatched = min(first.keys() ^ last.keys())
            raise InvalidOption(ending.option, f"{unmatched} is in one of {starting.option} and this alone")
        for partition, begin in sorted(first.items()):
            if begin > last[partition] >= 0:
                why = f"{begin} of {partition} is after its end, {last[partition]} in {ending.option}"
                raise InvalidOption(starting.option, why)


def _position(text: str) -> Position:
    for partition, offset in parse(text).items():
        if offset < 0:
            raise ValueError(f"{offset} of {partition} is not an offset; expected 0 or more")
    return Position.from_json(json.loads(text))


def _bound(options: Options, end: str, default: int, late: int | None) -> Bound:
    """Return a bound. A timestamp for all partitions takes precedence, as in Spark's Kafka source."""
    at, by_timestamp, offsets = f"{end}Timestamp", f"{end}OffsetsByTimestamp", f"{end}Offsets"
    if at in options:
        return Bound(option=at, timestamp=options.integer(at, 0, least=0), otherwise=default, late=late)
    if by_timestamp in options:
        times = options.parsed(by_timestamp, parse, _NOWHERE)
        for partition, time in times.items():
            if time < 0:
                raise InvalidOption(by_timestamp, f"{time} of {partition} is not a timestamp in milliseconds")
        return Bound(option=by_timestamp, timestamps=times, late=late)
    text = options.get(offsets)
    if text is None:
        return Bound(option=offsets, otherwise=default)
    if text.strip().lower() in {"earliest", "latest"}:
        return Bound(option=offsets, otherwise=EARLIEST if text.strip().lower() == "earliest" else LATEST)
    if not text.strip().startswith("{"):
        raise options.wrong(
            offsets, f'{text!r} is not earliest, latest or JSON as in {{"topic": {{"0": 17}}}}'
        )
    return Bound(option=offsets, offsets=options.parsed(offsets, parse, _NOWHERE))
