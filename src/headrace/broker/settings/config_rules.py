"""Which configs the resources of a cluster have, and which of their values are valid."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

from headrace.broker.settings.broker import BROKER_SETTINGS
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.group_configs import GROUP_CONFIGS, check_group_values
from headrace.broker.settings.setting import InvalidSetting, Kind, Scope, Settings, show
from headrace.broker.settings.topic import TOPIC_SETTINGS
from headrace.protocol.errors import KafkaError
from headrace.protocol.kafka_errors import InvalidConfig, InvalidRequest
from headrace.replication.controller.config_admin import ALL_BROKERS, ResourceType

_PER_LISTENER = ("ssl.keystore.", "ssl.truststore.", "ssl.key.password")

_SETTINGS: Mapping[ResourceType, Settings] = {
    ResourceType.TOPIC: TOPIC_SETTINGS,
    ResourceType.BROKER: BROKER_SETTINGS,
    ResourceType.GROUP: GROUP_CONFIGS,
}


class SettingRules:
    """The rules by the tables of settings and the current config of this broker."""

    def __init__(
        self, config: Callable[[], BrokerConfig], check_security: Callable[[BrokerConfig], Awaitable[None]]
    ) -> None:
        """`check_security` raises InvalidSetting if the listeners of this broker cannot use a config."""
        self._config = config
        self._check_security = check_security

    def is_known(self, type_: ResourceType, config: str) -> bool:
        return _SETTINGS[type_].get(config) is not None

    def list_default(self, type_: ResourceType, config: str) -> str | None:
        setting = _SETTINGS[type_].get(config)
        return None if setting is None or setting.kind is not Kind.LIST else show(setting.default) or ""

    async def check(self, type_: ResourceType, name: str, values: Mapping[str, str]) -> None:
        """Raise InvalidConfig or InvalidRequest, as Kafka does, if a resource cannot have `values`."""
        match type_:
            case ResourceType.TOPIC:
                self.check_topic(values)
            case ResourceType.BROKER:
                await self._check_broker(name, values)
            case ResourceType.GROUP:
                with _refused_as(InvalidConfig):
                    check_group_values(values, self._config().values)

    def check_topic(self, values: Mapping[str, str]) -> None:
        with _refused_as(InvalidConfig):
            TOPIC_SETTINGS.parse(values)
            self._config().check_topic(values)

    async def _check_broker(self, name: str, values: Mapping[str, str]) -> None:
        for value in values:
            setting = BROKER_SETTINGS.get(value)
            if setting is None:
                continue
            if setting.scope is Scope.READ_ONLY:
                raise InvalidRequest(f"{value} cannot be changed while the broker runs")
            if setting.scope is Scope.PER_BROKER and name == ALL_BROKERS:
                raise InvalidRequest(f"{value} can only be changed for one broker: name its id")
            if value.startswith(_PER_LISTENER):
                raise InvalidRequest(
                    f"{value} can only be changed for one listener: listener.name.NAME.{value}"
                )
        config = self._config()
        with _refused_as(InvalidRequest):
            if name == ALL_BROKERS:
                config.with_dynamic(values, {})  # another broker may not override any of them
                changed = config.with_dynamic(values, config.for_this)
            else:
                changed = config.with_dynamic(config.for_all, values)
            await self._check_security(changed)


@contextmanager
def _refused_as(error: type[KafkaError]) -> Iterator[None]:
    """Raise `error` instead of InvalidSetting."""
    try:
        yield
    except InvalidSetting as reason:
        raise error(str(reason)) from reason
