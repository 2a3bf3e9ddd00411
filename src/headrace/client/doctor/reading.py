"""The requests by which the doctor learns about a cluster."""

import json
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from http import HTTPStatus
from json import JSONDecodeError
from typing import Final

from headrace.client.cluster.log_dirs import read_log_dirs
from headrace.client.cluster.reading import SILENCE_S, read_configs, read_partitions, read_status
from headrace.client.cluster.status import UP
from headrace.client.doctor.cluster import ClusterFacts, Reached, TopicSafety, View
from headrace.client.doctor.groups import GroupFacts, between
from headrace.client.doctor.security import SETTINGS as SECURITY_SETTINGS
from headrace.client.doctor.security import SecurityFacts
from headrace.client.errors import NoSuchGroup, lowered
from headrace.client.groups.admin import GroupAdmin
from headrace.client.groups.group import Group
from headrace.client.schemas.location import ADVERTISED
from headrace.client.wire import requests
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.connection_settings import Target, settings_for
from headrace.protocol.between_brokers.broker_metrics import BrokerMetricsRequest
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse
from headrace.security.certificate_fields import not_valid_after

MOST_GROUPS: Final = 500  # that are checked
REACH_S: Final = 2.0
START_S: Final = 15.0  # the first request starts a gateway
MOST_BYTES: Final = 100_000  # of a gateway's answer
SETTLE_S: Final = 1.0  # for brokers whose metadata differs for a moment
_MIN_IN_SYNC: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
_DAMAGED: Final = "headrace_damaged_offsets"
_KEYS: Final = (_MIN_IN_SYNC, _UNCLEAN)
_RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")


def read_cluster(target: Target, http: Iterable[str] = ()) -> ClusterFacts:
    """Return the facts about a cluster; `http` are addresses of gateways to check, if they listen."""
    status = read_status(target)
    with Brokers(target, answer_s=SILENCE_S) as brokers:
        found = brokers.metadata()
        up = {broker.id for broker in status.brokers if broker.state == UP}
        # A silent broker delays only `read_status`.
        nodes = [node for node in requests.nodes_of(found) if node.id in up]
        views = dict(_views(brokers, nodes))
        if len(set(views.values())) > 1:
            time.sleep(SETTLE_S)
            views = dict(_views(brokers, nodes))
        told = _broker_settings(brokers, nodes)
        gateways = [*http, *_gateways(told.values())]
        reached = (_gateway(url, found.cluster_id) for url in dict.fromkeys(gateways))
        return ClusterFacts(
            status=status,
            views=views,
            log_dirs=read_log_dirs(brokers, nodes),
            topics=_topics(brokers, found),
            coordination=tuple(_zookeepers(each.get("zookeeper.connect", "") for each in told.values())),
            http=tuple(each for each in reached if each is not None),
            security=SecurityFacts(settings=told, certificates=_certificates(target, nodes)),
            throttled=tuple(
                sorted(broker_id for broker_id, settings in told.items() if _is_throttled(settings))
            ),
            damaged=_damaged(brokers, nodes),
        )


def read_groups(target: Target, apart_s: float) -> list[GroupFacts]:
    """Return the facts about groups, from two descriptions `apart_s` apart."""
    admin = GroupAdmin(Brokers(target))
    names = [each.name for each in admin.list_groups()][:MOST_GROUPS]
    before = _described(admin, names)
    if any(each.total_lag for each in before.values()):
        time.sleep(apart_s)
    after = _described(admin, list(before)) if before else {}
    return [between(before[name], group) for name, group in after.items()]


def _described(admin: GroupAdmin, names: Sequence[str]) -> dict[str, Group]:
    try:
        return {each.name: each for each in admin.describe(names)}
    except NoSuchGroup:  # a group was deleted meanwhile
        there = {each.name for each in admin.list_groups()}
        return {each.name: each for each in admin.describe([name for name in names if name in there])}


def _views(brokers: Brokers, nodes: Iterable[requests.Node]) -> Iterator[tuple[int, View]]:
    request = requests.metadata_request(None)
    answers = brokers.each({node: lambda at: at.ask(request) for node in nodes}, SILENCE_S)
    for node, seen in answers.items():
        if not isinstance(seen, NoAnswer):
            yield (
                node.id,
                View(
                    controller=seen.controller_id,
                    brokers=tuple(sorted(broker.node_id for broker in seen.brokers)),
                    leaders=frozenset(
                        (*partition, leader) for partition, leader in requests.leaders_of(seen).items()
                    ),
                ),
            )


def _topics(brokers: Brokers, found: MetadataResponse) -> dict[str, TopicSafety]:
    replicas: dict[str, int] = {}
    for each in read_partitions(found):
        replicas[each.topic] = min(replicas.get(each.topic, len(each.replicas)), len(each.replicas))
    settings = {(topic, name): value for topic, name, value in read_configs(brokers, replicas, _KEYS)}
    return {
        name: TopicSafety(
            replicas=count,
            min_in_sync=int(settings.get((name, _MIN_IN_SYNC)) or 1),
            unclean=settings.get((name, _UNCLEAN)) == "true",
        )
        for name, count in replicas.items()
    }


def _broker_settings(brokers: Brokers, nodes: Iterable[requests.Node]) -> dict[int, dict[str, str]]:
    """Return settings of each broker about other services and security; Kafka may not have some of them."""
    keys = ("zookeeper.connect", ADVERTISED, *_RATES, *SECURITY_SETTINGS)
    values = defaultdict[int, dict[str, str]](dict)
    exchanges = {
        node: partial(
            Connection.ask, request=requests.describe_configs_request(requests.BROKER, [str(node.id)], keys)
        )
        for node in nodes
    }
    for node, answer in brokers.each(exchanges, SILENCE_S).items():
        for result in () if isinstance(answer, NoAnswer) else answer.results:
            for config in result.configs:
                values[node.id][config.name] = config.value or ""
    return values


def _is_throttled(settings: Mapping[str, str]) -> bool:
    return any(settings.get(name, "") not in {"", str(2**63 - 1)} for name in _RATES)


def _damaged(brokers: Brokers, nodes: Iterable[requests.Node]) -> dict[TopicPartition, dict[int, int]]:
    """Return how many offsets of partitions are damaged, by broker; Kafka closes the connection instead."""
    found = defaultdict[TopicPartition, dict[int, int]](dict)
    request = BrokerMetricsRequest(prefixes=[_DAMAGED])
    exchanges = {node: partial(Connection.ask, request=request) for node in nodes}
    for node, answer in brokers.each(exchanges, SILENCE_S).items():
        for family in () if isinstance(answer, NoAnswer) else answer.families:
            for sample in family.samples:
                topic, partition = sample.labels
                found[TopicPartition(topic, int(partition))][node.id] = int(sample.value)
    return found


def _gateways(settings: Iterable[Mapping[str, str]]) -> Iterator[str]:
    """Yield the addresses of the gateways that brokers advertise, or run themselves.

    Those with HTTPS are left out: the certificates that they need are not known here.
    """
    for setting in settings:
        listener, advertised = setting.get("http.listener"), setting.get(ADVERTISED, "")
        if advertised.startswith("http://"):
            yield advertised
        elif listener and not advertised:
            yield f"http://{listener}"


def _certificates(target: Target, nodes: Iterable[requests.Node]) -> dict[str, datetime]:
    """Return when the certificates of brokers expire, on the listener that we are connected to."""
    if settings_for(target).security.tls is None:
        return {}
    found = {}
    for node in nodes:
        try:
            text = ssl.get_server_certificate((node.host, node.port), timeout=REACH_S)
        except OSError:  # a broker that does not answer is another finding
            continue
        found[f"{node.host}:{node.port}"] = not_valid_after(ssl.PEM_cert_to_DER_cert(text))
    return found


def _zookeepers(connects: Iterable[str]) -> Iterator[Reached]:
    """Check every server in zookeeper.connect, which may end with a path."""
    addresses = {each.strip() for text in connects for each in text.partition("/")[0].split(",")}
    for address in sorted(addresses - {""}):
        host, _, port = address.rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), REACH_S) as asked:
                asked.sendall(b"srvr")  # any answer is enough
                asked.recv(1)
        except (OSError, ValueError) as error:
            yield Reached(address=address, answers=False, why=_why(error))
        else:
            yield Reached(address=address, answers=True)


def _gateway(url: str, cluster_id: str | None) -> Reached | None:
    """Return whether a gateway serves, and which cluster; None if no gateway listens, which is fine."""
    try:
        _get(f"{url.rstrip('/')}/readyz")
        served = json.loads(_get(f"{url.rstrip('/')}/v1/metadata/id"))["scope"]["clusters"]["kafka-cluster"]
        return Reached(address=url, answers=True, other=served if served != cluster_id else "")
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        return Reached(address=url, answers=False, why=f"{error.code} {error.reason}")
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            return None
        return Reached(address=url, answers=False, why=_why(error))
    except (KeyError, TypeError, JSONDecodeError):
        return None
    except (OSError, ValueError) as error:
        return Reached(address=url, answers=False, why=_why(error))


def _get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=START_S) as answer:  # noqa: S310  an address of the user
        return bytes(answer.read(MOST_BYTES))


def _why(error: Exception) -> str:
    reason = getattr(error, "reason", error)
    said = str(getattr(reason, "strerror", None) or reason)
    return lowered(said)
