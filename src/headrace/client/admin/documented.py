"""Settings with their types, defaults and descriptions, as brokers document them (DescribeConfigs v3).

DocumentedConfigs(Brokers("127.0.0.1:9092")).of_topic("orders")[0].documentation
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from html import unescape
from typing import Final

from headrace.client.admin.topics import Config, TopicAdmin, config_of
from headrace.client.errors import ClientError, raise_for
from headrace.client.wire.brokers import QUESTION_S, Brokers
from headrace.client.wire.requests import BROKER, TOPIC, describe_configs_request
from headrace.protocol.schema import describe_configs

TYPES: Final = {1: "boolean", 2: "string", 3: "int", 4: "short", 5: "long", 6: "double", 7: "list"}
TYPES_OF_TEXT: Final = {8: "class", 9: "password"}
_OF_TOPIC, _DEFAULT = 1, 5  # sources of a value
_TRIED: Final = "headrace-new-topic"  # the name of a topic that is checked and never created
_BREAK: Final = re.compile(r"<(?:br|/?p|/?[ou]l|/?li|/?pre)(?:\s[^<>]{0,500})?/?>", re.IGNORECASE)
_TAG: Final = re.compile(r"</?(?:a|b|code|em|i|strong|tt)(?:\s[^<>]{0,500})?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentedConfig(Config):
    """A setting, and what its broker says about it; old brokers say nothing.

    The default is the value that a topic has unless its own is set, or that a broker has by its code.
    """

    type: str = ""
    default: str | None = None
    documentation: str = ""
    sensitive: bool = False


class DocumentedConfigs:
    """Documented settings, for any number of threads."""

    def __init__(self, brokers: Brokers) -> None:
        self._brokers = brokers

    def of_topic(self, name: str) -> list[DocumentedConfig]:
        """Return every setting of a topic, by name; NoSuchTopic if there is none."""
        request = _request(TOPIC, name)
        answer: describe_configs.DescribeConfigsResponse = self._brokers.decided(
            lambda at: at.ask(request), within_s=QUESTION_S
        )
        return _documented(answer, name)

    def of_broker(self, broker_id: int) -> list[DocumentedConfig]:
        """Return every setting of a broker, by name, as the broker itself has it."""
        node = TopicAdmin(self._brokers).broker(broker_id)
        answer = self._brokers.at(node.address, _request(BROKER, str(broker_id)))
        return _documented(answer, f"broker {broker_id}")

    def of_new_topic(self) -> list[DocumentedConfig]:
        """Return the settings that a new topic can have, with the values that it would get as defaults.

        Brokers document the settings of topics that exist: any will do, because its own values are left out.
        On a cluster without topics the settings have no descriptions.
        """
        admin = TopicAdmin(self._brokers)
        names = sorted(admin.names(), key=lambda each: (each.startswith("_"), each))
        for name in names[:3]:
            try:
                return [
                    replace(each, value=each.default, source="default", is_default=True)
                    for each in self.of_topic(name)
                ]
            except ClientError:
                continue  # it was deleted meanwhile, or the user may not describe it
        checked = admin.check(_TRIED, partitions=None, replicas=None, configs={}).configs or ()
        return [
            DocumentedConfig(
                name=setting.name,
                value=setting.value,
                source="default",
                is_default=True,
                read_only=False,
                default=setting.value,
            )
            for setting in sorted(checked, key=lambda setting: setting.name)
        ]


def plain_text(documentation: str) -> str:
    """Return a description as text: those of Apache Kafka are HTML, made for its web site."""
    return " ".join(unescape(_TAG.sub("", _BREAK.sub(" ", documentation))).split())


def _request(resource_type: int, name: str) -> describe_configs.DescribeConfigsRequest:
    resources: Iterable[describe_configs.DescribeConfigsResource] = describe_configs_request(
        resource_type, [name]
    ).resources
    return describe_configs.DescribeConfigsRequest(
        resources=list(resources), include_synonyms=True, include_documentation=True
    )


def _documented(answer: describe_configs.DescribeConfigsResponse, what: str) -> list[DocumentedConfig]:
    (found,) = answer.results
    raise_for(found.error_code, found.error_message, what)
    is_topic = found.resource_type == TOPIC
    return [
        DocumentedConfig(
            **config_of(config),
            type=(TYPES | TYPES_OF_TEXT).get(config.config_type, ""),
            default=_default(config, is_topic=is_topic),
            documentation=plain_text(config.documentation or ""),
            sensitive=config.is_sensitive,
        )
        for config in sorted(found.configs, key=lambda each: each.name)
    ]


def _default(found: describe_configs.DescribeConfigsResourceResult, *, is_topic: bool) -> str | None:
    """Return the first synonym that is not the topic's own, or of a broker the last, which is in its code."""
    if is_topic:
        others = [synonym for synonym in found.synonyms if synonym.source != _OF_TOPIC]
    else:
        others = [synonym for synonym in found.synonyms if synonym.source == _DEFAULT]
    if others:
        return others[0].value
    return found.value if found.config_source == _DEFAULT else None
