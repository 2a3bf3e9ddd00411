"""A broker's configuration: defaults, under a file, under the environment, under the command line."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.broker.broker_settings import BROKER_SETTINGS, COARSER, MINUTE_MS
from headrace.broker.settings import InvalidSetting, Value, parse_properties
from headrace.broker.topic_settings import check_topic_values, log_config, topic_values
from headrace.group.limits import GroupLimits
from headrace.security.listeners import Endpoint, Listener, SecurityProtocol
from headrace.storage.config import LogConfig

ENVIRONMENT_PREFIX = "HEADRACE_"
_MOST_ADDRESSES = 1_000  # with a number of connections of their own
_MOST_DIGITS = 10


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Every broker setting with its value, and who set it."""

    values: Mapping[str, Value | None]
    given: Mapping[str, str] = field(default_factory=dict)  # at the start
    for_all: Mapping[str, str] = field(default_factory=dict)  # for all brokers, while they run
    for_this: Mapping[str, str] = field(default_factory=dict)  # for this one, while it runs

    @classmethod
    def load(
        cls,
        *,
        file: Path | None = None,
        environment: Mapping[str, str] | None = None,
        sets: Mapping[str, str],
    ) -> "BrokerConfig":
        """The settings of a properties file, of variables such as `HEADRACE_LOG_DIRS`, and of `sets`.

        Where two name the same setting the later of the three wins.
        """
        given: dict[str, str] = {}
        if file is not None:
            given |= parse_properties(file.read_text("utf-8"), str(file))
        given |= _from_environment(environment or {})
        given |= sets
        return cls.of(given)

    @classmethod
    def of(
        cls,
        given: Mapping[str, str],
        *,
        for_all: Mapping[str, str] | None = None,
        for_this: Mapping[str, str] | None = None,
    ) -> "BrokerConfig":
        """Defaults under `given` under the dynamic ones; InvalidSetting for the first that cannot be.

        A dynamic setting that is unknown is kept and has no effect, as in Kafka.
        """
        given = _with_aliases(given)
        values = {name: setting.default for name, setting in BROKER_SETTINGS.by_name.items()}
        values |= coarser_times(given)
        values |= BROKER_SETTINGS.parse(given)
        for layer in (for_all or {}, for_this or {}):
            values |= BROKER_SETTINGS.parse(
                {name: text for name, text in layer.items() if BROKER_SETTINGS.get(name) is not None}
            )
        config = cls(values, given, dict(for_all or {}), dict(for_this or {}))
        config._check()
        return config

    def _check(self) -> None:
        """Raise InvalidSetting for what cannot be together, now rather than when it is used."""
        _ = self.advertised, self.inter_broker_listener, self.connections_by_address
        check_topic_values(self.topic_values({}))
        if len(self.items("log.dirs")) != 1:
            raise InvalidSetting("log.dirs: name one directory; for more disks, run more brokers")
        roles = self.items("process.roles")
        if roles and "broker" not in roles:
            raise InvalidSetting(
                f"process.roles={','.join(roles)}: this is a broker; any broker can be controller"
            )

    def with_dynamic(self, for_all: Mapping[str, str], for_this: Mapping[str, str]) -> "BrokerConfig":
        """This configuration under other dynamic settings."""
        return self.of(self.given, for_all=for_all, for_this=for_this)

    def integer(self, name: str) -> int:
        value = self.values[name]
        assert isinstance(value, int), (name, value)
        return value

    def number(self, name: str) -> float:
        value = self.values[name]
        assert isinstance(value, int | float), (name, value)
        return value

    def flag(self, name: str) -> bool:
        return bool(self.values[name])

    def text(self, name: str) -> str:
        value = self.values[name]
        assert isinstance(value, str), (name, value)
        return value

    def items(self, name: str) -> tuple[str, ...]:
        value = self.values[name]
        assert isinstance(value, tuple), (name, value)
        return value

    @property
    def broker_id(self) -> int:
        return self.integer("broker.id")

    @property
    def log_dir(self) -> Path:
        """The directory that holds the logs."""
        return Path(self.items("log.dirs")[0])

    @property
    def connections_by_address(self) -> dict[str, int]:
        """How many connections may come from some addresses, where that is not max.connections.per.ip."""
        name = "max.connections.per.ip.overrides"
        parts = [part for part in self.text(name).split(",") if part]
        if len(parts) > _MOST_ADDRESSES:
            raise InvalidSetting(f"{name} has {len(parts)} addresses, expected at most {_MOST_ADDRESSES}")
        limits = {}
        for part in parts:
            address, _, count = part.strip().rpartition(":")
            try:
                limits[str(ipaddress.ip_address(address.strip("[]")))] = _count(count)
            except ValueError:
                raise InvalidSetting(
                    f"{name}={part[:100]}: expected ADDRESS:COUNT, such as 127.0.0.1:200; "
                    "names are not resolved"
                ) from None
        return limits

    @property
    def without_effect(self) -> list[str]:
        """The settings given at the start that differ from Kafka's default and change nothing here."""
        return [
            name
            for name, text in self.given.items()
            if not (setting := BROKER_SETTINGS.find(name)).has_effect
            and setting.parse(text) != setting.default
        ]

    @property
    def rack(self) -> str | None:
        value = self.values["broker.rack"]
        return None if value is None else str(value)

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        return self._endpoints("listeners")

    @property
    def advertised(self) -> tuple[Endpoint, ...]:
        return self._endpoints("advertised.listeners")

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that other brokers connect to: by default the first PLAINTEXT one."""
        listeners = {each.name: each.security_protocol for each in self.listeners}
        name = self.values["inter.broker.listener.name"]
        if name is None:
            wanted = SecurityProtocol[self.text("security.inter.broker.protocol")]
            found = [each for each, protocol in listeners.items() if protocol is wanted]
            if not found:
                raise InvalidSetting(
                    f"listeners has no listener with security.inter.broker.protocol={wanted.name}"
                )
            return found[0]
        if name not in listeners:
            raise InvalidSetting(f"inter.broker.listener.name={name} is not one of {', '.join(listeners)}")
        return str(name)

    def listener(self, name: str) -> Listener:
        """Return what a connection that comes in on the listener `name` has to know of it."""
        protocol = next(each.security_protocol for each in self.listeners if each.name == name)
        return Listener(name, protocol, name == self.inter_broker_listener)

    def _endpoints(self, setting: str) -> tuple[Endpoint, ...]:
        protocols = self._security_protocols()
        endpoints = []
        for text in self.items(setting):
            try:
                endpoint = Endpoint.parse(text, protocols)
            except ValueError as error:
                raise InvalidSetting(f"{setting}={text}: {error}") from None
            protocol = endpoint.security_protocol
            if protocol is not SecurityProtocol.PLAINTEXT:
                raise InvalidSetting(
                    f"{setting}={text}: {protocol.name} is not supported yet, only PLAINTEXT"
                )
            endpoints.append(endpoint)
        return tuple(endpoints)

    def _security_protocols(self) -> dict[str, SecurityProtocol]:
        """Return the security protocol of each listener name, from listener.security.protocol.map."""
        setting = "listener.security.protocol.map"
        found = {}
        for entry in filter(None, self.text(setting).split(",")):
            name, colon, protocol = entry.strip().partition(":")
            if not (name and colon and protocol in SecurityProtocol.__members__):
                raise InvalidSetting(
                    f"{setting}={entry}: expected NAME:PROTOCOL, with one of "
                    f"{', '.join(SecurityProtocol.__members__)}"
                )
            found[name] = SecurityProtocol[protocol]
        return found

    def topic_values(self, own: Mapping[str, str]) -> Mapping[str, Value]:
        """Every setting of a topic that sets `own` itself."""
        return topic_values(self.values, own)

    def min_insync_replicas(self, own: Mapping[str, str]) -> int:
        """How many replicas a topic wants in sync before acks=all, given what it sets itself."""
        value = topic_values(self.values, own)["min.insync.replicas"]
        assert isinstance(value, int), value
        return value

    @property
    def sends_to_nearest(self) -> bool:
        """Whether consumers are sent to a replica in their own rack."""
        return "RackAware" in str(self.values["replica.selector.class"])

    def unclean_allowed(self, own: Mapping[str, str]) -> bool:
        """Whether a replica that was not in sync may lead a topic, given what it sets itself."""
        return bool(topic_values(self.values, own)["unclean.leader.election.enable"])

    def throttled_replicas(self, own: Mapping[str, str]) -> tuple[Collection[str], Collection[str]]:
        """The replicas of a topic that are throttled: at their leaders, and as followers."""
        values = topic_values(self.values, own)
        lists = [values[f"{role}.replication.throttled.replicas"] for role in ("leader", "follower")]
        assert all(isinstance(each, tuple) for each in lists), lists
        return lists[0], lists[1]  # type: ignore[return-value]

    def group_limits(self) -> GroupLimits:
        """What the broker lets its groups do."""
        policy = self.text("group.consumer.migration.policy")
        return GroupLimits(
            initial_rebalance_delay_ms=self.integer("group.initial.rebalance.delay.ms"),
            min_session_timeout_ms=self.integer("group.min.session.timeout.ms"),
            max_session_timeout_ms=self.integer("group.max.session.timeout.ms"),
            max_size=self.integer("group.max.size"),
            max_record_bytes=self.integer("message.max.bytes"),
            offset_metadata_max_bytes=self.integer("offset.metadata.max.bytes"),
            offsets_retention_ms=self.integer("offsets.retention.minutes") * MINUTE_MS,
            consumer_session_timeout_ms=self.integer("group.consumer.session.timeout.ms"),
            consumer_heartbeat_interval_ms=self.integer("group.consumer.heartbeat.interval.ms"),
            consumer_max_size=self.integer("group.consumer.max.size"),
            consumer_assignors=self.items("group.consumer.assignors"),
            may_upgrade=policy in {"bidirectional", "upgrade"},
            may_downgrade=policy in {"bidirectional", "downgrade"},
        )

    def check_topic(self, own: Mapping[str, str]) -> None:
        """Raise InvalidSetting if a topic cannot set `own`."""
        check_topic_values(self.topic_values(own))

    def log_config(self, own: Mapping[str, str]) -> LogConfig:
        """The configuration of a topic's logs, given what the topic sets itself."""
        expiration = self.integer("producer.id.expiration.ms")
        return log_config(topic_values(self.values, own), producer_id_expiration_ms=expiration)


_ALIASES = (("broker.id", "node.id"), ("node.id", "broker.id"), ("log.dirs", "log.dir"))


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > _MOST_DIGITS:
        raise ValueError(text)
    return int(text)


def _with_aliases(given: Mapping[str, str]) -> dict[str, str]:
    """`given`, and the settings that Kafka has two names for under the other one, too."""
    both = dict(given)
    for name, alias in _ALIASES:
        if alias in given:
            both.setdefault(name, given[alias])
    if both.get("broker.id") != both.get("node.id"):
        raise InvalidSetting(f"broker.id={both['broker.id']} and node.id={both['node.id']} are not the same")
    return both


def coarser_times(given: Mapping[str, str]) -> dict[str, int]:
    """The settings in ms whose value `given` names in minutes or hours; one in ms still wins over it."""
    times: dict[str, int] = {}
    for name, units in COARSER.items():
        for coarser, unit_ms in units.items():
            if coarser in given:
                value = BROKER_SETTINGS.find(coarser).parse(given[coarser])
                assert isinstance(value, int), (coarser, value)
                times[name] = -1 if value < 0 else value * unit_ms
                break
    return times


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`HEADRACE_LOG_DIRS=…` as `log.dirs`; a variable that names no setting is refused like any other."""
    return {
        name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith(ENVIRONMENT_PREFIX)
    }
