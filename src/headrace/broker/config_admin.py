"""Changing settings while the cluster runs: checked, written to ZooKeeper, and announced to every broker."""

import asyncio
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from headrace.broker.settings import InvalidSetting, Kind, Scope, Settings, show
from headrace.broker.topic_settings import TOPIC_SETTINGS
from headrace.coordination.znodes import Config, ConfigChange

if TYPE_CHECKING:
    from headrace.broker.server import Broker

TOPIC, BROKER = 2, 4  # types of resources, by the numbers of the protocol
ALL_BROKERS = "<default>"


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

    async def change(self, kind: int, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Apply `changes` to what a topic or broker has; all of them, or none and a KafkaError."""
        async with self._lock:
            entity, settings = self._entity(kind, name)
            values = await self._current(entity)
            for change in changes:
                _apply(values, change, settings)
            await self._replace(entity, values, settings, validate_only)

    async def replace(self, kind: int, name: str, values: dict[str, str], *, validate_only: bool) -> None:
        """Let a topic or broker have `values` and nothing else."""
        async with self._lock:
            entity, settings = self._entity(kind, name)
            await self._replace(entity, values, settings, validate_only)

    def _entity(self, kind: int, name: str) -> tuple[Config, Settings]:
        if kind == TOPIC:
            if name not in self._broker.image.topics:
                raise UnknownTopicOrPartition(f"there is no topic {name!r}")
            return Config(kind="topics", name=name, values={}), TOPIC_SETTINGS
        if kind == BROKER:
            if name not in {"", str(self._broker.broker_id)}:
                raise InvalidRequest(f"this is broker {self._broker.broker_id}, not {name!r}")
            return Config(kind="brokers", name=name or ALL_BROKERS, values={}), BROKER_SETTINGS
        raise InvalidRequest(f"resources of type {kind} have no settings here")

    async def _current(self, entity: Config) -> dict[str, str]:
        found = await self._broker.session.get(entity.path)
        return {} if found is None else dict(Config.decode(entity.kind, entity.name, found.data).values)

    async def _replace(
        self, entity: Config, values: dict[str, str], settings: Settings, validate_only: bool
    ) -> None:
        self._check(entity, values, settings)
        if validate_only:
            return
        config = Config(kind=entity.kind, name=entity.name, values=values)
        session = self._broker.session
        if await session.exists(config.path):
            await session.set(config.path, config.encode())
        else:
            await session.create(config.path, config.encode())
        change = ConfigChange(entity=f"{entity.kind}/{entity.name}")
        await session.create(ConfigChange.prefix, change.encode(), sequence=True)
        await self._broker.membership.view.load_config(entity.kind, entity.name)

    def _check(self, entity: Config, values: dict[str, str], settings: Settings) -> None:
        try:
            settings.parse(values)
            if entity.kind == "topics":
                self._broker.config.log_config(values)
        except InvalidSetting as error:
            raise InvalidConfig(str(error)) from error
        if entity.kind == "brokers":
            fixed = [name for name in values if BROKER_SETTINGS.find(name).scope is Scope.READ_ONLY]
            if fixed:
                raise InvalidRequest(f"{fixed[0]} cannot be changed while the broker runs")
            self._check_together(entity, values)

    def _check_together(self, entity: Config, values: dict[str, str]) -> None:
        """Each value may do, and all of them not: what a broker would not take over is not confirmed."""
        config = self._broker.config
        try:
            if entity.name == ALL_BROKERS:
                config.with_dynamic(values, {})  # another broker may have nothing of its own over it
                config.with_dynamic(values, config.for_this)
            else:
                config.with_dynamic(config.for_all, values)
        except InvalidSetting as error:
            raise InvalidConfig(str(error)) from error


def _apply(values: dict[str, str], change: Change, settings: Settings) -> None:
    try:
        setting = settings.find(change.name)
    except InvalidSetting as error:
        raise InvalidConfig(str(error)) from error
    if change.operation is Operation.DELETE:
        values.pop(change.name, None)
        return
    if change.value is None:
        raise InvalidRequest(f"{change.name} is set to nothing")
    if change.operation is Operation.SET:
        values[change.name] = change.value
        return
    if setting.kind is not Kind.LIST:
        raise InvalidConfig(f"{change.name} is not a list that can be added to or taken from")
    default = show(setting.default) or ""
    known = [part for part in values.get(change.name, default).split(",") if part]
    named = [part.strip() for part in change.value.split(",")]
    kept = [part for part in known if part not in named]
    values[change.name] = ",".join(kept + named if change.operation is Operation.APPEND else kept)
