"""From what people write to what librdkafka is told: its settings by keyword, by dotted name, or as a dict.

Producer("127.0.0.1:9092", linger_ms=20)
Producer("127.0.0.1:9092", settings={"linger.ms": 20})
Producer({"bootstrap.servers": "127.0.0.1:9092", "linger.ms": 20})  # as for confluent_kafka
"""

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException

from headrace.client.errors import BadSetting

Settings = Mapping[str, Any]
Client = TypeVar("Client")

LOGGER: Final = logging.getLogger("headrace.librdkafka")  # what librdkafka has to say, by Python's own means

BOOTSTRAP: Final = ("bootstrap.servers", "metadata.broker.list")
_ALIASES: Final = {  # two names of the same: a default must give way to either
    "acks": "request.required.acks",
    "compression.type": "compression.codec",
    "delivery.timeout.ms": "message.timeout.ms",
    "linger.ms": "queue.buffering.max.ms",
}
_WITH_UNDERSCORES: Final = {
    "log_level",
    "error_cb",
    "stats_cb",
    "throttle_cb",
    "oauth_cb",
    "logger",
    "on_commit",
}
_UNKNOWN: Final = re.compile(r'No such configuration property: "(.*)"')


def gather(
    bootstrap: str | Settings, *, defaults: Settings, settings: Settings | None, named: Settings
) -> dict[str, Any]:
    """All settings under librdkafka's names. A keyword wins over `settings`, and those over the dict."""
    given: dict[str, Any] = (
        {"bootstrap.servers": bootstrap} if isinstance(bootstrap, str) else dict(bootstrap)
    )
    given |= settings or {}
    given |= {dotted(name): value for name, value in named.items() if value is not None}
    if not any(given.get(name) for name in BOOTSTRAP):
        raise BadSetting("nobody says where the brokers are: give bootstrap.servers, as HOST:PORT,...")
    for name, value in defaults.items():
        if name not in given and _ALIASES.get(name) not in given:
            given[name] = value
    return given


def dotted(keyword: str) -> str:
    """`linger_ms` is linger.ms; the few names that have an underscore keep it."""
    return keyword if keyword in _WITH_UNDERSCORES else keyword.replace("_", ".")


def bootstrap_of(settings: Settings) -> str:
    """Where the brokers are, by whichever name."""
    return str(next(settings[name] for name in BOOTSTRAP if settings.get(name)))


def delivery_timeout_ms(settings: Settings) -> int | None:
    """How long a record is tried, by whichever name; None if that is no number, which `build` will tell."""
    names = ("delivery.timeout.ms", _ALIASES["delivery.timeout.ms"])
    found = str(next((settings[name] for name in names if name in settings), ""))
    return int(found) if found.isdigit() else None


def build(kind: Callable[..., Client], settings: dict[str, Any]) -> Client:
    """The client, or a BadSetting that says which one to look at."""
    settings.setdefault("logger", LOGGER)
    try:
        return kind(settings)
    except KafkaException as error:
        raise BadSetting(_sentence(str(error.args[0].str()))) from error
    except (TypeError, ValueError) as error:
        raise BadSetting(_sentence(str(error))) from error


def _sentence(said: str) -> str:
    said = re.sub(r"^Failed to create \w+: ", "", said.strip())
    unknown = _UNKNOWN.search(said)
    if unknown:
        return (
            f"there is no setting {unknown[1]}: librdkafka's CONFIGURATION.md has all names "
            "(as a keyword, an underscore stands for each dot)"
        )
    return f"{said[:1].lower()}{said[1:]}"
