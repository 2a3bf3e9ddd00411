"""Changing settings while the cluster runs: checked, written to ZooKeeper, and announced to every broker."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.client_metrics import CLIENT_METRICS_CONFIGS, INTERVAL_MS, check_patterns
from headrace.broker.config_resources import ALL_BROKERS, ZNODES, ResourceType
from headrace.broker.group_configs import GROUP_CONFIGS, check_group_values
from headrace.broker.settings import InvalidSetting, Kind, Scope, Settings, show
from headrace.broker.topic_settings import TOPIC_SETTINGS
from headrace.controller.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from headrace.coordination.session import Conflict
from headrace.coordination.znodes import Config, ConfigChange
from headrace.protocol.errors import KafkaError

if TYPE_CHECKING:
    from headrace.broker.server import Broker

MAX_CONFIG_CHARS = 256 * 1024  # names and values of one resource: they share a znode, which has 1 MiB at most
_ATTEMPTS = 5  # to change settings that other brokers change at the same time
_PER_LISTENER = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")

_SETTINGS: Mapping[ResourceType, Settings] = {
    ResourceType.TOPIC: TOPIC_SETTINGS,
    ResourceType.BROKER: BROKER_SETTINGS,
    ResourceType.CLIENT_METRICS: CLIENT_METRICS_CONFIGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}

logger = logging.getLogger(__name__)


class Operation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: Operation
    value: str | None


class ConfigAdmin:
    """One change to settings at a time; what returns is in force on this broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._lock = asyncio.Lock()
        self._checks: Mapping[ResourceType, Callable[[str, dict[str, str]], None]] = {
            ResourceType.TOPIC: self._check_topic,
            ResourceType.BROKER: self._check_broker,
            ResourceType.CLIENT_METRICS: _check_client_metrics,
            ResourceType.GROUP: self._check_group,
        }

    async def change(self, kind: int, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Apply `changes` to what a resource has; all of them, or none and a KafkaError."""
        type_, node = self._resource(kind, name)

        def changed(values: dict[str, str]) -> dict[str, str]:
            for change in changes:
                _apply(values, change, _SETTINGS[type_])
            return values

        async with self._lock:
            await self._update(type_, node, changed, validate_only)

    async def replace(self, kind: int, name: str, values: dict[str, str], *, validate_only: bool) -> None:
        """Let a resource have `values` and nothing else."""
        type_, node = self._resource(kind, name)
        async with self._lock:
            await self._update(type_, node, lambda _old: values, validate_only)

    def _resource(self, kind: int, name: str) -> tuple[ResourceType, str]:
        """The type of a resource, and the name that its settings are kept under."""
        try:
            type_ = ResourceType(kind)
        except ValueError:
            raise InvalidRequest(f"resources of type {kind} have no settings here") from None
        if type_ is ResourceType.BROKER:
            if name not in {"", str(self._broker.broker_id)}:
                raise InvalidRequest(f"this is broker {self._broker.broker_id}, not {name[:100]!r}")
            return type_, name or ALL_BROKERS
        if not name:
            raise InvalidRequest(f"{type_.name} resources have no defaults to change: name one")
        if type_ is ResourceType.TOPIC and name not in self._broker.image.topics:
            raise UnknownTopicOrPartition(f"there is no topic {name[:300]!r}")
        return type_, name

    async def _update(
        self,
        type_: ResourceType,
        name: str,
        changed: Callable[[dict[str, str]], dict[str, str]],
        validate_only: bool,
    ) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            entity = Config(kind=ZNODES[type_], name=name, values={})
            found = await self._broker.session.get(entity.path)
            old = {} if found is None else dict(Config.decode(entity.kind, name, found.data).values)
            values = changed(dict(old))
            self._check(type_, name, old, values)
            if validate_only:
                return
            config = Config(kind=entity.kind, name=name, values=values)
            try:
                await self._write(config, None if found is None else found.version)
            except Conflict:  # another broker has changed them meanwhile
                if attempt == _ATTEMPTS:
                    raise
            else:
                break
        change = ConfigChange(entity=config.path.removeprefix("/config/"))
        await self._broker.session.create(ConfigChange.prefix, change.encode(), sequence=True)
        await self._broker.view.load_config(config.kind, config.name)

    async def _write(self, config: Config, version: int | None) -> None:
        """Replace the settings that were found at `version`; None: there were none."""
        session = self._broker.session
        disposable = config.kind in {"groups", "client-metrics"} and not config.values  # nothing is listed
        if version is None:
            if not disposable:
                await session.create(config.path, config.encode())
        elif disposable:
            await session.delete(config.path, version)
        else:
            await session.set(config.path, config.encode(), version)

    def _check(self, type_: ResourceType, name: str, old: Mapping[str, str], values: dict[str, str]) -> None:
        size = sum(len(each) + len(value) for each, value in values.items())
        if size > MAX_CONFIG_CHARS and values != old:
            raise InvalidRequest(f"settings of {size} characters, expected at most {MAX_CONFIG_CHARS}")
        self._checks[type_](name, values)
        unknown = [each for each in values.keys() - old.keys() if _SETTINGS[type_].get(each) is None]
        if unknown:  # of a broker: Kafka keeps those for plugins
            logger.warning(
                "%d broker settings are unknown, such as %.100r: they are kept and have no effect",
                len(unknown),
                unknown[0],
            )

    def _check_topic(self, _name: str, values: dict[str, str]) -> None:
        with refused_as(InvalidConfig):
            TOPIC_SETTINGS.parse(values)
            self._broker.config.check_topic(values)

    def _check_group(self, _name: str, values: dict[str, str]) -> None:
        with refused_as(InvalidConfig):
            check_group_values(values, self._broker.config.values)

    def _check_broker(self, name: str, values: dict[str, str]) -> None:
        for each in values:
            setting = BROKER_SETTINGS.get(each)
            if setting is None:
                continue
            if setting.scope is Scope.READ_ONLY:
                raise InvalidRequest(f"{each} cannot be changed while the broker runs")
            if setting.scope is Scope.PER_BROKER and name == ALL_BROKERS:
                raise InvalidRequest(f"{each} can only be changed for one broker: name its id")
            if each.startswith(_PER_LISTENER):
                raise InvalidRequest(
                    f"{each} can only be changed for one listener: listener.name.NAME.{each}"
                )
        config = self._broker.config
        with refused_as(InvalidRequest):
            if name == ALL_BROKERS:
                config.with_dynamic(values, {})  # another broker may have nothing of its own over it
                config.with_dynamic(values, config.for_this)
            else:
                config.with_dynamic(config.for_all, values)


def _check_client_metrics(_name: str, values: dict[str, str]) -> None:
    for each in values:
        if each not in CLIENT_METRICS_CONFIGS.by_name:
            raise InvalidRequest(f"client metrics have no setting {each[:100]!r}")
    with refused_as(InvalidConfig):
        interval_ms = CLIENT_METRICS_CONFIGS.parse(values).get("interval.ms", INTERVAL_MS[0])
        check_patterns(values)
    if interval_ms not in INTERVAL_MS:
        expected = f"expected {INTERVAL_MS[0]} to {INTERVAL_MS[-1]}"
        raise InvalidRequest(f"interval.ms={interval_ms}: {expected}")


@contextmanager
def refused_as(error: type[KafkaError]) -> Iterator[None]:
    """Raise `error` for a setting that cannot be."""
    try:
        yield
    except InvalidSetting as reason:
        raise error(str(reason)) from reason


def _apply(values: dict[str, str], change: Change, settings: Settings) -> None:
    """Make one change; a setting that is deleted need be neither set nor known."""
    if change.operation is Operation.DELETE:
        values.pop(change.name, None)
        return
    if change.value is None:
        raise InvalidRequest(f"{change.name[:100]} has no value")
    if change.operation is Operation.SET:
        values[change.name] = change.value
        return
    setting = settings.get(change.name)
    if setting is None or setting.kind is not Kind.LIST:
        raise InvalidConfig(f"{change.name[:100]} is not a list that can be added to or taken from")
    default = show(setting.default) or ""
    known = [part for part in values.get(change.name, default).split(",") if part]
    named = dict.fromkeys(part.strip() for part in change.value.split(","))
    if change.operation is Operation.APPEND:
        values[change.name] = ",".join(dict.fromkeys([*known, *named]))
    else:
        values[change.name] = ",".join(part for part in known if part not in named)
