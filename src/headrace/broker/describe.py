"""Settings as DescribeConfigs shows them: value, where it comes from, and what else it might have been."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum

from headrace.broker.broker_settings import BROKER_SETTINGS
from headrace.broker.config import BrokerConfig
from headrace.broker.settings import Scope, Setting, show
from headrace.broker.topic_settings import BROKER_SYNONYMS, TOPIC_SETTINGS


class Source(IntEnum):
    """Where a value was set, by the numbers of the protocol."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    STATIC_BROKER = 4
    DEFAULT = 5


@dataclass(frozen=True, slots=True)
class Synonym:
    """A place that gives, or would give, a setting its value."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class Described:
    """One setting of a topic or a broker."""

    setting: Setting
    synonyms: tuple[Synonym, ...]  # the first one counts
    read_only: bool

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def value(self) -> str | None:
        return self.synonyms[0].value

    @property
    def source(self) -> Source:
        return self.synonyms[0].source


def describe_topic(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[Described]:
    """Every setting of a topic that sets `own` itself."""
    for name, setting in TOPIC_SETTINGS.by_name.items():
        synonym = BROKER_SYNONYMS[name]
        places = [Synonym(name, own[name], Source.TOPIC)] if name in own else []
        if synonym in config.given:
            places.append(Synonym(synonym, config.given[synonym], Source.STATIC_BROKER))
        places.append(Synonym(synonym, show(setting.default), Source.DEFAULT))
        yield Described(setting, tuple(places), read_only=False)


def describe_broker(config: BrokerConfig) -> Iterator[Described]:
    """Every setting of this broker."""
    for name, setting in BROKER_SETTINGS.by_name.items():
        places = [Synonym(name, config.given[name], Source.STATIC_BROKER)] if name in config.given else []
        places.append(Synonym(name, show(setting.default), Source.DEFAULT))
        yield Described(setting, tuple(places), read_only=setting.scope is Scope.READ_ONLY)
