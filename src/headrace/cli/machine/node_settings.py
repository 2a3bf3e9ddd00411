"""The settings of each broker of a node, derived from one properties file. Pure.

Of a node with broker.id=10, listeners=PLAINTEXT://:9092 and log.dirs=/a,/b, four brokers are

    broker 10  port 9092  /a               broker 12  port 9094  /a/brokers/12
    broker 11  port 9093  /b               broker 13  port 9095  /b/brokers/13

The first broker on a directory uses it directly, so that a broker that becomes a node keeps its data.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from headrace.broker.settings.config import AUTO, BrokerConfig
from headrace.broker.settings.setting import InvalidSetting
from headrace.security.listeners import Endpoint
from headrace.storage.directory import BROKERS

_HIGHEST_PORT = 65535
_PORT_SETTINGS = ("listeners", "advertised.listeners")


def broker_count(config: BrokerConfig, cpus: int) -> int:
    """Return how many brokers a node has: auto is one for each CPU, and at least one for each directory."""
    wanted = config.text("headrace.brokers")
    return max(cpus, len(config.items("log.dirs"))) if wanted == AUTO else int(wanted)


def node_configs(config: BrokerConfig, count: int) -> list[BrokerConfig]:
    """Return the configuration of each of `count` brokers; InvalidSetting if two would use the same port."""
    for setting, endpoints in zip(_PORT_SETTINGS, (config.listeners, config.advertised), strict=True):
        used = Counter(_addresses(setting, endpoints, count))
        shared = sorted(port for (_, port), times in used.items() if times > 1)
        if shared:
            raise InvalidSetting(
                f"{setting}: with headrace.brokers={count}, two listeners would use port {shared[0]}: each "
                f"broker adds one to every port, so choose ports that are at least {count} apart"
            )
    return [BrokerConfig.of(broker_settings(config, index, count)) for index in range(count)]


def broker_settings(config: BrokerConfig, index: int, count: int) -> Mapping[str, str]:
    """Return the settings of the broker at `index`, which is 0 for the first."""
    if count == 1:
        return config.given
    broker_id = config.broker_id + index
    directories = config.items("log.dirs")
    directory = Path(directories[index % len(directories)])
    if index >= len(directories):  # the first broker on a directory uses it directly
        directory = directory / BROKERS / str(broker_id)
    derived = {
        **config.given,
        "broker.id": str(broker_id),
        "node.id": str(broker_id),
        "log.dirs": str(directory),
        "headrace.node": config.node or f"node-{config.broker_id}",
    }
    for name, endpoints in zip(_PORT_SETTINGS, (config.listeners, config.advertised), strict=True):
        if endpoints:
            derived[name] = ",".join(str(_shifted(name, endpoint, index)) for endpoint in endpoints)
    return derived


def _shifted(setting: str, endpoint: Endpoint, index: int) -> Endpoint:
    """Return the endpoint of the broker at `index`; port 0, any free port, stays 0."""
    if endpoint.port == 0:
        return endpoint
    port = endpoint.port + index
    if port > _HIGHEST_PORT:
        raise InvalidSetting(
            f"{setting}={endpoint}: broker {index + 1} of this node would use port {port}, the highest is "
            f"{_HIGHEST_PORT}"
        )
    return replace(endpoint, port=port)


def _addresses(setting: str, endpoints: Sequence[Endpoint], count: int) -> Iterator[tuple[str, int]]:
    """Yield the fixed addresses of all brokers; what listens on all interfaces has every host."""
    hosts = {endpoint.host for endpoint in endpoints}
    for index in range(count):
        for each in endpoints:
            if each.port:
                is_everywhere = each.host in {"", "0.0.0.0", "::"}  # noqa: S104  it is compared, not bound
                for host in hosts if is_everywhere else {each.host}:
                    yield host, _shifted(setting, each, index).port
