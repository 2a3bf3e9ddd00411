"""Changing configs at runtime: validated, written to ZooKeeper, and announced to every broker."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from headrace.coordination.errors import CoordinationError
from headrace.coordination.session import Conflict, ZooKeeperSession
from headrace.coordination.znodes import CONFIG_CHANGES, Config
from headrace.protocol.kafka_errors import InvalidConfig, InvalidRequest, UnknownTopicOrPartition
from headrace.replication.controller.transactions import remove_old_changes, write_config

USERS: Final = "users"
ALL_BROKERS: Final = "<default>"  # the znode with the configs that all brokers share
MAX_CONFIG_CHARS = 256 * 1024  # names and values of one resource: they share a znode, which has 1 MiB at most
_ATTEMPTS = 5  # to change configs that other brokers change at the same time

logger = logging.getLogger(__name__)


class ResourceType(IntEnum):
    """The kinds of resources that have configs, by their numbers in the protocol."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32

    @property
    def znode(self) -> str:
        """The name of their directory below /config in ZooKeeper."""
        return _ZNODES[self]


_ZNODES: Final = {ResourceType.TOPIC: "topics", ResourceType.BROKER: "brokers", ResourceType.GROUP: "groups"}


class ConfigOperation(IntEnum):
    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Change(NamedTuple):
    name: str
    operation: ConfigOperation
    value: str | None


class ConfigRules(Protocol):
    """The configs that each type of resource has, and their valid values."""

    async def check(self, type_: ResourceType, name: str, values: Mapping[str, str]) -> None:
        """Raise KafkaError if the resource `name` cannot have `values`."""

    def is_known(self, type_: ResourceType, config: str) -> bool: ...

    def list_default(self, type_: ResourceType, config: str) -> str | None:
        """Return the default of a config that is a list; None if it is no list."""


class ConfigAdmin:
    """Makes one change at a time; it is in force on this broker when the method returns."""

    def __init__(
        self,
        session: ZooKeeperSession,
        *,
        broker_id: int,
        rules: ConfigRules,
        topic_exists: Callable[[str], bool],
        apply: Callable[[str, str], Awaitable[None]],
        now_ms: Callable[[], int],
    ) -> None:
        """Call `apply` with the directory and the name of a config that has changed."""
        self._session = session
        self._broker_id = broker_id
        self._rules = rules
        self._topic_exists = topic_exists
        self._apply = apply
        self._now_ms = now_ms
        self._lock = asyncio.Lock()

    async def change(self, kind: int, name: str, changes: Sequence[Change], *, validate_only: bool) -> None:
        """Apply `changes` to the configs of a resource: all of them, or none and a KafkaError."""
        type_, node = self._resource(kind, name)

        def changed(values: dict[str, str]) -> dict[str, str]:
            for change in changes:
                self._change(values, type_, change)
            return values

        await self.change_entity(type_.znode, node, changed, validate_only=validate_only, type_=type_)

    async def replace(self, kind: int, name: str, values: dict[str, str], *, validate_only: bool) -> None:
        type_, node = self._resource(kind, name)
        await self.change_entity(
            type_.znode, node, lambda _old: values, validate_only=validate_only, type_=type_
        )

    def _resource(self, kind: int, name: str) -> tuple[ResourceType, str]:
        """Return the type of a resource, and the name of the znode with its configs."""
        try:
            type_ = ResourceType(kind)
        except ValueError:
            raise InvalidRequest(f"resources of type {kind} have no configs here (INVALID_REQUEST)") from None
        if type_ is ResourceType.BROKER:
            if name not in {"", str(self._broker_id)}:
                raise InvalidRequest(f"this is broker {self._broker_id}, not {name[:100]!r}")
            return type_, name or ALL_BROKERS
        if not name:
            raise InvalidRequest(f"{type_.name} resources have no defaults to change: name one")
        if type_ is ResourceType.TOPIC and not self._topic_exists(name):
            raise UnknownTopicOrPartition(f"topic {name[:300]!r} does not exist (UNKNOWN_TOPIC_OR_PARTITION)")
        return type_, name

    async def change_entity(
        self,
        kind: str,
        name: str,
        changed: Callable[[dict[str, str]], dict[str, str]],
        *,
        validate_only: bool = False,
        type_: ResourceType | None = None,
    ) -> None:
        """Replace the configs of a resource, user, client id or address with what `changed` makes of them."""
        async with self._lock:
            for attempt in range(1, _ATTEMPTS + 1):
                found = await self._session.get(Config.path_of(kind, name))
                old = {} if found is None else dict(Config.decode(kind, name, found.data).values)
                values = changed(dict(old))
                size = sum(len(each) + len(value) for each, value in values.items())
                if size > MAX_CONFIG_CHARS and values != old:
                    raise InvalidRequest(f"configs of {size} characters, expected at most {MAX_CONFIG_CHARS}")
                if type_ is not None:
                    await self._check(type_, name, old, values)
                if validate_only:
                    return
                config = Config(kind=kind, name=name, values=values)
                try:
                    await write_config(self._session, config, found)
                except Conflict:  # another broker has changed it since it was read
                    if attempt == _ATTEMPTS:
                        raise
                else:
                    break
            await self._apply(kind, name)
            try:
                await remove_old_changes(self._session, CONFIG_CHANGES, self._now_ms())
            except CoordinationError as error:  # the change itself is made; the next one removes them
                logger.debug("could not remove old change notifications: %s", error)

    async def _check(
        self, type_: ResourceType, name: str, old: Mapping[str, str], values: dict[str, str]
    ) -> None:
        await self._rules.check(type_, name, values)
        unknown = [each for each in values.keys() - old.keys() if not self._rules.is_known(type_, each)]
        if unknown:  # only a broker may have them: Kafka keeps them for plugins
            logger.warning(
                "%d broker configs are unknown, such as %.100r: they are stored and have no effect",
                len(unknown),
                unknown[0],
            )

    def _change(self, values: dict[str, str], type_: ResourceType, change: Change) -> None:
        """Apply one change to `values`; a config that is deleted need be neither set nor known."""
        if change.operation is ConfigOperation.DELETE:
            values.pop(change.name, None)
            return
        if change.value is None:
            raise InvalidRequest(f"{change.name[:100]} has no value")
        if change.operation is ConfigOperation.SET:
            values[change.name] = change.value
            return
        default = self._rules.list_default(type_, change.name)
        if default is None:
            raise InvalidConfig(f"{change.name[:100]} is no list: APPEND and SUBTRACT need one")
        current = [part for part in values.get(change.name, default).split(",") if part]
        named = dict.fromkeys(part.strip() for part in change.value.split(","))
        if change.operation is ConfigOperation.APPEND:
            values[change.name] = ",".join(dict.fromkeys([*current, *named]))
        else:
            values[change.name] = ",".join(part for part in current if part not in named)
