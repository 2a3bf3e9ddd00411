"""Settings as DescribeConfigs returns them: value, source and synonyms."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import dropwhile
from typing import Final

from headrace.broker.settings.broker import BROKER_SETTINGS, COARSER
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.group_configs import GROUP_CONFIGS, GROUP_SYNONYMS
from headrace.broker.settings.setting import Kind, Scope, Setting, show, shown
from headrace.broker.settings.topic import BROKER_SYNONYMS, TOPIC_SETTINGS

PROCESS: Final = Setting(
    name="headrace.pid", kind=Kind.INT, default=None, doc="The process id of this broker; it cannot be set."
)
_UNKNOWN_DOC: Final = "No effect: unknown setting."
_FAMILIES: Final = {
    name: (times, *coarser) for times, coarser in COARSER.items() for name in (times, *coarser)
}
"""Settings of one duration in different units, the one in ms first; each is a synonym of those before."""


class Source(IntEnum):
    """The source of a value, by the numbers of the protocol."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


@dataclass(frozen=True, slots=True)
class Synonym:
    """A value that the setting has, or would have without the synonyms before it."""

    name: str
    value: str | None
    source: Source


@dataclass(frozen=True, slots=True)
class DescribedSetting:
    """One setting of a resource. As in Kafka, the value need not be that of a synonym."""

    setting: Setting
    value: str | None
    synonyms: Sequence[Synonym]  # by precedence
    read_only: bool = False

    @property
    def name(self) -> str:
        return self.setting.name

    @property
    def source(self) -> Source:
        return self.synonyms[0].source if self.synonyms else Source.DEFAULT


def describe_topic(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[DescribedSetting]:
    """Yield every setting of a topic with the settings `own`."""
    values = config.topic_values(own)
    for name, setting in TOPIC_SETTINGS.by_name.items():
        if name in values:
            synonyms = [*_own_synonym(setting, own, Source.TOPIC)]
            if name in BROKER_SYNONYMS:
                synonyms += _broker_synonyms(config, BROKER_SYNONYMS[name])
            yield DescribedSetting(setting, show(values[name]), synonyms)


def describe_group(config: BrokerConfig, own: Mapping[str, str]) -> Iterator[DescribedSetting]:
    """Yield every setting of a group with the settings `own`."""
    for name, setting in GROUP_CONFIGS.by_name.items():
        synonyms = [*_own_synonym(setting, own, Source.GROUP)]
        if name in GROUP_SYNONYMS:
            synonyms += _broker_synonyms(config, GROUP_SYNONYMS[name])
        else:
            synonyms.append(Synonym(name, show(setting.default), Source.DEFAULT))
        yield DescribedSetting(setting, synonyms[0].value, synonyms)


def describe_broker(config: BrokerConfig) -> Iterator[DescribedSetting]:
    """Yield every setting of this broker, and its process id, which no other API returns."""
    given = config.given.keys() | config.for_all.keys() | config.for_this.keys()
    shown_always = {name for name, setting in BROKER_SETTINGS.by_name.items() if not setting.internal}
    for name in sorted(shown_always | given):
        synonyms = _broker_synonyms(config, name)
        setting = _broker_setting(name)
        value = synonyms[0].value if synonyms else None
        yield DescribedSetting(setting, value, synonyms, read_only=_is_read_only(setting))
    pid = str(os.getpid())
    yield DescribedSetting(PROCESS, pid, [Synonym(PROCESS.name, pid, Source.DEFAULT)], read_only=True)


def describe_all_brokers(config: BrokerConfig) -> Iterator[DescribedSetting]:
    """Yield the dynamic settings of all brokers."""
    for name, text in config.for_all.items():
        setting = _broker_setting(name)
        value = shown(setting, text)
        synonyms = [Synonym(name, value, Source.DYNAMIC_DEFAULT_BROKER)]
        yield DescribedSetting(setting, value, synonyms, read_only=_is_read_only(setting))


def _broker_setting(name: str) -> Setting:
    """Return the setting called `name`; an unknown one is sensitive, as in Kafka."""
    known = BROKER_SETTINGS.get(name)
    return known or Setting(name=name, kind=Kind.UNKNOWN, default=None, doc=_UNKNOWN_DOC)


def _is_read_only(setting: Setting) -> bool:
    """Return whether Kafka calls the setting read-only, which includes all settings of one listener."""
    return setting.scope is Scope.READ_ONLY or setting.name not in BROKER_SETTINGS.by_name


def _own_synonym(setting: Setting, own: Mapping[str, str], source: Source) -> Iterator[Synonym]:
    if setting.name in own:
        yield Synonym(setting.name, shown(setting, own[setting.name]), source)


def _broker_synonyms(config: BrokerConfig, name: str) -> list[Synonym]:
    """Return the synonyms of a broker setting by precedence.

    As in Kafka, the list begins with the setting itself: if only log.retention.hours is set,
    log.retention.ms has no synonyms.
    """
    layers = (
        (config.for_this, Source.DYNAMIC_BROKER),
        (config.for_all, Source.DYNAMIC_DEFAULT_BROKER),
        (config.given, Source.STATIC_BROKER),
    )
    base = BROKER_SETTINGS.base_of(name)
    names = _FAMILIES.get(name, (name,)) if base is None else (name, base)
    family = [_broker_setting(each) for each in names]
    synonyms = [
        Synonym(each.name, shown(each, layer[each.name]), source)
        for layer, source in layers
        for each in family
        if each.name in layer
    ]
    synonyms += [
        Synonym(each.name, show(each.default), Source.DEFAULT)
        for each in family
        if each.default is not None and not each.is_sensitive
    ]
    return list(dropwhile(lambda synonym: synonym.name != name, synonyms))
