"""A broker's configuration: defaults, overridden by a file, the environment and the command line."""

import ipaddress
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headrace.broker.settings.broker import BROKER_SETTINGS, COARSER
from headrace.broker.settings.setting import InvalidSetting, Scope, Value, parse_properties
from headrace.broker.settings.topic import check_topic_values, log_config, topic_values
from headrace.security.acl_authorizer import parse_super_users
from headrace.security.listeners import Endpoint, Listener, SecurityProtocol
from headrace.security.principals import Principal
from headrace.storage.config import LogConfig

ENVIRONMENT_PREFIX = "HEADRACE_"
_MOST_ADDRESSES = 1_000  # in max.connections.per.ip.overrides
_MOST_DIGITS = 10
AUTO = "auto"  # as headrace.brokers


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The value of every broker setting, and the static and dynamic settings it comes from."""

    values: Mapping[str, Value | None]
    given: Mapping[str, str] = field(default_factory=dict)  # static
    for_all: Mapping[str, str] = field(default_factory=dict)  # dynamic, for all brokers
    for_this: Mapping[str, str] = field(default_factory=dict)  # dynamic, for this broker

    @classmethod
    def load(
        cls,
        *,
        file: Path | None = None,
        environment: Mapping[str, str] | None = None,
        sets: Mapping[str, str],
    ) -> "BrokerConfig":
        """Load a properties file, environment variables such as `HEADRACE_LOG_DIRS`, and `sets`.

        The later of the three takes precedence.
        """
        given = {} if file is None else parse_properties(file.read_text("utf-8"), str(file))
        for variable, value in (environment or {}).items():
            if variable.startswith(ENVIRONMENT_PREFIX):  # names of unknown settings are refused below
                given[variable.removeprefix(ENVIRONMENT_PREFIX).lower().replace("_", ".")] = value
        return cls.of({**given, **sets})

    @classmethod
    def of(
        cls,
        given: Mapping[str, str],
        *,
        for_all: Mapping[str, str] | None = None,
        for_this: Mapping[str, str] | None = None,
    ) -> "BrokerConfig":
        """Return the defaults, overridden by `given` and then the dynamic settings.

        Raise InvalidSetting for the first invalid one. Unknown dynamic settings are kept and have no
        effect, as in Kafka.
        """
        given = dict(given)
        for name, alias in _ALIASES:  # a setting that has two names is given under both of them
            if alias in given:
                given.setdefault(name, given[alias])
        if given.get("broker.id") != given.get("node.id"):
            raise InvalidSetting(f"broker.id={given['broker.id']} and node.id={given['node.id']} differ")
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
        """Raise InvalidSetting for contradictions now rather than when a setting is used."""
        _ = self.advertised, self.inter_broker_listener, self.connections_by_address, self.super_users
        check_topic_values(self.topic_values({}))
        count, brokers = len(self.items("log.dirs")), self.text("headrace.brokers")
        if not count:
            raise InvalidSetting("log.dirs: expected at least one directory")
        if brokers != AUTO and count > int(brokers):
            raise InvalidSetting(
                f"log.dirs has {count} directories, and headrace.brokers={brokers}: a broker uses one "
                f"directory; set headrace.brokers to auto, or to {count} or more"
            )
        roles = self.items("process.roles")
        if roles and "broker" not in roles:
            raise InvalidSetting(
                f"process.roles={','.join(roles)}: expected the role broker; every broker can be controller"
            )

    @property
    def super_users(self) -> frozenset[Principal]:
        """The principals that may do everything."""
        try:
            return parse_super_users(self.text("super.users"))
        except ValueError as error:
            raise InvalidSetting(f"super.users: {error}") from None

    def with_dynamic(self, for_all: Mapping[str, str], for_this: Mapping[str, str]) -> "BrokerConfig":
        """Return this configuration with other dynamic settings."""
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
        """The directory of the logs of one broker."""
        (directory,) = self.items("log.dirs")
        return Path(directory)

    @property
    def connections_by_address(self) -> dict[str, int]:
        """The connection limits of max.connections.per.ip.overrides, by address."""
        name = "max.connections.per.ip.overrides"
        parts = [part for part in self.text(name).split(",") if part]
        if len(parts) > _MOST_ADDRESSES:
            raise InvalidSetting(f"{name} has {len(parts)} addresses, expected at most {_MOST_ADDRESSES}")
        limits = {}
        for part in parts:
            address, _, count = part.strip().rpartition(":")
            try:
                if not count.isdecimal() or len(count) > _MOST_DIGITS:
                    raise ValueError(count)  # noqa: TRY301
                limits[str(ipaddress.ip_address(address.strip("[]")))] = int(count)
            except ValueError:
                raise InvalidSetting(
                    f"{name}={part[:100]}: expected ADDRESS:COUNT, such as 127.0.0.1:200; "
                    "host names are not resolved"
                ) from None
        return limits

    @property
    def without_effect(self) -> list[str]:
        """The static settings that differ from Kafka's default and have no effect in Headrace."""
        return [
            name
            for name, text in self.given.items()
            if not (setting := BROKER_SETTINGS.find(name)).has_effect
            and setting.parse(text) != setting.default
        ]

    @property
    def rack(self) -> str | None:
        value = self.values["broker.rack"]
        return str(value) if value else None  # the environment has an empty value where there are no zones

    @property
    def node(self) -> str | None:
        value = self.values["headrace.node"]
        return None if value is None else str(value)

    @property
    def listeners(self) -> tuple[Endpoint, ...]:
        return self._endpoints("listeners")

    @property
    def advertised(self) -> tuple[Endpoint, ...]:
        return self._endpoints("advertised.listeners")

    @property
    def inter_broker_listener(self) -> str:
        """The name of the listener that other brokers connect to."""
        listeners = {endpoint.name: endpoint.security_protocol for endpoint in self.listeners}
        name = self.values["inter.broker.listener.name"]
        if name is None:
            required = SecurityProtocol[self.text("security.inter.broker.protocol")]
            matching = [listener for listener, protocol in listeners.items() if protocol is required]
            if not matching:
                raise InvalidSetting(
                    f"listeners has no listener with security.inter.broker.protocol={required.name}"
                )
            return matching[0]
        if name not in listeners:
            raise InvalidSetting(f"inter.broker.listener.name={name} is not one of {', '.join(listeners)}")
        return str(name)

    def listener(self, name: str) -> Listener:
        """Return the listener `name` for its incoming connections."""
        protocol = next(each.security_protocol for each in self.listeners if each.name == name)
        return Listener(name, protocol, name == self.inter_broker_listener)

    def of_listener(self, listener: str, name: str, *, mechanism: str | None = None) -> Value | None:
        """Return a setting for one listener, and for one SASL mechanism of it."""
        prefix = f"listener.name.{listener.lower()}."
        names = (f"{prefix}{mechanism.lower()}.{name}",) if mechanism is not None else ()
        for each in (*names, f"{prefix}{name}"):
            if each in self.values:
                return self.values[each]
        return self.values[name]

    def _endpoints(self, setting: str) -> tuple[Endpoint, ...]:
        protocols, by_name = "listener.security.protocol.map", {}
        for entry in filter(None, self.text(protocols).split(",")):
            name, colon, protocol = entry.strip().partition(":")
            if not (name and colon and protocol in SecurityProtocol.__members__):
                raise InvalidSetting(
                    f"{protocols}={entry}: expected NAME:PROTOCOL, with one of "
                    f"{', '.join(SecurityProtocol.__members__)}"
                )
            by_name[name] = SecurityProtocol[protocol]
        endpoints = []
        for text in self.items(setting):
            try:
                endpoints.append(Endpoint.parse(text, by_name))
            except ValueError as error:
                raise InvalidSetting(f"{setting}={text}: {error}") from None
        return tuple(endpoints)

    def topic_values(self, own: Mapping[str, str]) -> Mapping[str, Value]:
        """Return every setting of a topic with the settings `own`."""
        return topic_values(self.values, own)

    def min_insync_replicas(self, own: Mapping[str, str]) -> int:
        """Return min.insync.replicas of a topic with the settings `own`."""
        value = topic_values(self.values, own)["min.insync.replicas"]
        assert isinstance(value, int), value
        return value

    def reloaded(self, config: "BrokerConfig") -> tuple["BrokerConfig", list[str]]:
        """Return this configuration with the dynamic settings of a changed file.

        Also return the names of changed settings that need a restart.
        """
        changed = {name for name in BROKER_SETTINGS.by_name if config.given.get(name) != self.given.get(name)}
        fixed = {name for name in changed if BROKER_SETTINGS.find(name).scope is Scope.READ_ONLY}
        given = {name: text for name, text in self.given.items() if name not in changed - fixed}
        given |= {name: config.given[name] for name in changed - fixed if name in config.given}
        return self.of(given, for_all=self.for_all, for_this=self.for_this), sorted(fixed)

    @property
    def sends_to_nearest(self) -> bool:
        """Whether consumers fetch from a replica in their rack (KIP-392)."""
        return "RackAware" in str(self.values["replica.selector.class"])

    def unclean_allowed(self, own: Mapping[str, str]) -> bool:
        """Return unclean.leader.election.enable of a topic with the settings `own`."""
        return bool(topic_values(self.values, own)["unclean.leader.election.enable"])

    def throttled_replicas(self, own: Mapping[str, str]) -> tuple[Collection[str], Collection[str]]:
        """Return the throttled replicas of a topic: those throttled by leaders, and by followers."""
        values = topic_values(self.values, own)
        lists = [values[f"{role}.replication.throttled.replicas"] for role in ("leader", "follower")]
        assert all(isinstance(each, tuple) for each in lists), lists
        return lists[0], lists[1]  # type: ignore[return-value]

    def check_topic(self, own: Mapping[str, str]) -> None:
        """Raise InvalidSetting if the topic settings `own` are invalid."""
        check_topic_values(self.topic_values(own))

    def log_config(self, own: Mapping[str, str]) -> LogConfig:
        """Return the log configuration of a topic with the settings `own`."""
        return log_config(
            topic_values(self.values, own),
            producer_id_expiration_ms=self.integer("producer.id.expiration.ms"),
            max_producer_ids=self.integer("headrace.max.producer.ids.per.partition"),
            producer_id_live_ms=self.integer("headrace.producer.id.live.ms"),
        )


_ALIASES = (("broker.id", "node.id"), ("node.id", "broker.id"), ("log.dirs", "log.dir"))


def coarser_times(given: Mapping[str, str]) -> dict[str, int]:
    """Return the settings in ms that `given` sets in minutes or hours; those set in ms take precedence."""
    times: dict[str, int] = {}
    for name, units in COARSER.items():
        for coarser, unit_ms in units.items():
            if coarser in given:
                value = BROKER_SETTINGS.find(coarser).parse(given[coarser])
                assert isinstance(value, int), (coarser, value)
                times[name] = -1 if value < 0 else value * unit_ms
                break
    return times
