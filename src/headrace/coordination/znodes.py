"""Every znode Headrace uses: its path, and its content to and from bytes. Kafka's layout, up to 3.9.

A class per kind of znode: its fields are the content, `path` says where it lives. What is in ZooKeeper
may have been written by anybody: a znode that cannot be read raises CorruptZnode, which names it.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self
from urllib.parse import quote, unquote

from headrace.coordination.processes import ProcessIdentity
from headrace.security.listeners import Endpoint, SecurityProtocol

BROKER_IDS = "/brokers/ids"
REGISTRATION_COUNTS = "/brokers/registration_counts"
TOPICS = "/brokers/topics"
DELETED_TOPICS = "/admin/delete_topics"
CONFIG_CHANGES = "/config/changes"
PERSISTENT_PATHS = (
    BROKER_IDS,
    REGISTRATION_COUNTS,
    TOPICS,
    DELETED_TOPICS,
    CONFIG_CHANGES,
    "/config/topics",
    "/config/brokers",
    "/config/groups",
    "/config/client-metrics",
    "/config/clients",
    "/config/users",
    "/cluster",
    "/isr_change_notification",
)
"""What must be there before the first broker registers."""


class CorruptZnode(Exception):
    """A znode does not hold what its place promises."""

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(f"{path} in ZooKeeper cannot be read: {data[:200]!r}")


def registration_count(broker_id: int) -> str:
    """The path of a persistent znode whose version counts how often the broker has registered.

    A transaction that checks it cannot take one life of the broker for another.
    """
    return f"{REGISTRATION_COUNTS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def deleted_topic_path(topic: str) -> str:
    return f"{DELETED_TOPICS}/{topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterId:
    """The name of the cluster, made by the first broker."""

    id: str
    path: ClassVar[str] = "/cluster/id"

    def encode(self) -> bytes:
        return _dump({"version": "1", "id": self.id})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        with _content(cls.path, data) as content:
            return cls(id=str(content["id"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistration:
    """A live broker: ephemeral, so that it goes with the broker's session. Its czxid is the broker epoch."""

    broker_id: int
    endpoints: Sequence[Endpoint]  # at least one
    timestamp_ms: int
    rack: str | None = None
    may_have_lost: bool = False  # records: it stopped uncleanly, and its machine has been down since
    process: ProcessIdentity | None = None  # for others on its machine, who can prove that it has exited

    @property
    def path(self) -> str:
        return self.path_of(self.broker_id)

    @staticmethod
    def path_of(broker_id: int) -> str:
        return f"{BROKER_IDS}/{broker_id}"

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of the listener with this name."""
        return next((each for each in self.endpoints if each.name == listener), None)

    def encode(self) -> bytes:
        content: dict[str, Any] = {
            "version": 5,
            "host": self.endpoints[0].host,
            "port": self.endpoints[0].port,
            "jmx_port": -1,
            "timestamp": str(self.timestamp_ms),
            "endpoints": [str(endpoint) for endpoint in self.endpoints],
            "listener_security_protocol_map": {
                endpoint.name: endpoint.security_protocol.name for endpoint in self.endpoints
            },
            "features": {},
        }
        if self.may_have_lost:
            content["may_have_lost"] = True
        if self.process is not None:
            content["process"] = self.process._asdict()
        return _dump(content if self.rack is None else content | {"rack": self.rack})

    @classmethod
    def decode(cls, broker_id: int, data: bytes) -> Self:
        with _content(f"{BROKER_IDS}/{broker_id}", data) as content:
            return cls(
                broker_id=broker_id,
                endpoints=_endpoints(content),
                timestamp_ms=int(content["timestamp"]),
                rack=content.get("rack"),
                may_have_lost=bool(content.get("may_have_lost", False)),
                process=_process(content.get("process")),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicAssignment:
    """A topic: its id, and the replicas of every partition, the preferred leader first."""

    topic: str
    topic_id: bytes
    replicas: Mapping[int, Sequence[int]]
    adding: Mapping[int, Sequence[int]] = field(default_factory=dict)
    removing: Mapping[int, Sequence[int]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return topic_path(self.topic)

    def encode(self) -> bytes:
        return _dump(
            {
                "version": 3,
                "topic_id": encode_id(self.topic_id),
                "partitions": _by_partition(self.replicas),
                "adding_replicas": _by_partition(self.adding),
                "removing_replicas": _by_partition(self.removing),
            }
        )

    @classmethod
    def decode(cls, topic: str, data: bytes) -> Self:
        with _content(topic_path(topic), data) as content:
            return cls(
                topic=topic,
                topic_id=decode_id(content["topic_id"]),
                replicas=_partitions(content["partitions"]),
                adding=_partitions(content.get("adding_replicas", {})),
                removing=_partitions(content.get("removing_replicas", {})),
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Who leads a partition, and who is in sync with the leader."""

    topic: str
    partition: int
    leader: int  # -1: nobody
    leader_epoch: int
    isr: Sequence[int]
    controller_epoch: int
    elr: Sequence[int] = ()  # left the ISR while too few were in sync: they have all that is committed
    last_leader: int = -1  # while nobody leads
    broker_epochs: Mapping[int, int] = field(default_factory=dict)  # of those above, when this was written
    version: int = 0  # the znode's, which is Kafka's partition epoch; not in its content

    @staticmethod
    def path_of(topic: str, partition: int) -> str:
        return f"{topic_path(topic)}/partitions/{partition}/state"

    @property
    def path(self) -> str:
        return self.path_of(self.topic, self.partition)

    def encode(self) -> bytes:
        content: dict[str, Any] = {
            "version": 1,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "isr": list(self.isr),
            "controller_epoch": self.controller_epoch,
        }
        if self.elr:
            content["elr"] = list(self.elr)
        if self.last_leader != -1:
            content["last_leader"] = self.last_leader
        if self.broker_epochs:
            content["broker_epochs"] = {str(each): epoch for each, epoch in self.broker_epochs.items()}
        return _dump(content)

    @classmethod
    def decode(cls, topic: str, partition: int, data: bytes, *, version: int = 0) -> Self:
        with _content(cls.path_of(topic, partition), data) as content:
            return cls(
                topic=topic,
                partition=partition,
                leader=int(content["leader"]),
                leader_epoch=int(content["leader_epoch"]),
                isr=tuple(int(replica) for replica in content["isr"]),
                controller_epoch=int(content["controller_epoch"]),
                elr=tuple(int(replica) for replica in content.get("elr", ())),
                last_leader=int(content.get("last_leader", -1)),
                broker_epochs={
                    int(each): int(epoch) for each, epoch in content.get("broker_epochs", {}).items()
                },
                version=version,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The settings of a topic, a broker, a group or a metrics subscription that differ from the defaults."""

    kind: str  # "topics", "brokers", "groups" or "client-metrics"
    name: str  # a topic, a broker id, "<default>", a group or a subscription
    values: Mapping[str, str]

    @staticmethod
    def path_of(kind: str, name: str) -> str:
        return f"/config/{kind}/{encode_config_name(name)}"

    @property
    def path(self) -> str:
        return self.path_of(self.kind, self.name)

    def encode(self) -> bytes:
        return _dump({"version": 1, "config": dict(self.values)})

    @classmethod
    def decode(cls, kind: str, name: str, data: bytes) -> Self:
        with _content(cls.path_of(kind, name), data) as content:
            return cls(kind=kind, name=name, values={str(k): str(v) for k, v in content["config"].items()})


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChange:
    """Says that a Config has changed: a sequential znode, so that no broker misses one."""

    entity: str  # "topics/orders" or "brokers/1": the path of the Config below /config
    prefix: ClassVar[str] = f"{CONFIG_CHANGES}/config_change_"

    def encode(self) -> bytes:
        return _dump({"version": 2, "entity_path": self.entity})

    @classmethod
    def decode(cls, path: str, data: bytes) -> Self:
        with _content(path, data) as content:
            return cls(entity=str(content["entity_path"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller:
    """The broker that decides who leads: ephemeral, first come, first elected."""

    broker_id: int
    timestamp_ms: int
    path: ClassVar[str] = "/controller"

    def encode(self) -> bytes:
        return _dump({"version": 1, "brokerid": self.broker_id, "timestamp": str(self.timestamp_ms)})

    @classmethod
    def decode(cls, data: bytes) -> Self:
        with _content(cls.path, data) as content:
            return cls(broker_id=int(content["brokerid"]), timestamp_ms=int(content["timestamp"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerEpoch:
    """How many controllers there have been: what fences the earlier ones."""

    epoch: int
    path: ClassVar[str] = "/controller_epoch"

    def encode(self) -> bytes:
        return str(self.epoch).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        try:
            return cls(epoch=int(data))
        except ValueError:
            raise CorruptZnode(cls.path, data) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdBlock:
    """The producer ids handed out last: a broker takes them a thousand at a time."""

    broker_id: int
    first: int
    last: int
    path: ClassVar[str] = "/latest_producer_id_block"

    def encode(self) -> bytes:
        return _dump(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes) -> Self:
        with _content(cls.path, data) as content:
            return cls(
                broker_id=int(content["broker"]),
                first=int(content["block_start"]),
                last=int(content["block_end"]),
            )


def encode_config_name(name: str) -> str:
    """The last part of a Config's path; names of topics and brokers stay as they are."""
    return quote(name, safe="<>") if name.strip(".") else name.replace(".", "%2E")


def decode_config_name(encoded: str) -> str:
    return unquote(encoded)


def encode_id(topic_id: bytes) -> str:
    """Sixteen bytes as Kafka prints them: URL-safe base64 without padding."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def decode_id(text: str) -> bytes:
    decoded = urlsafe_b64decode(text + "==")
    if len(decoded) != 16:
        raise ValueError(f"an id of {len(decoded)} bytes")
    return decoded


def _dump(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()


@contextmanager
def _content(path: str, data: bytes) -> Iterator[dict[str, Any]]:
    """The JSON object in `data`; whatever goes wrong while it is taken apart is CorruptZnode."""
    try:
        yield json.loads(data)
    except (ValueError, KeyError, TypeError, AttributeError, Base64Error):
        raise CorruptZnode(path, data) from None


def _endpoints(content: Mapping[str, Any]) -> tuple[Endpoint, ...]:
    protocols = {
        name: SecurityProtocol[protocol]
        for name, protocol in content.get("listener_security_protocol_map", {}).items()
    }
    return tuple(
        Endpoint.parse(text, SecurityProtocol.__members__ | protocols) for text in content["endpoints"]
    )


def _process(content: Mapping[str, Any] | None) -> ProcessIdentity | None:
    if content is None:
        return None
    return ProcessIdentity(
        boot_id=str(content["boot_id"]),
        pid_namespace=str(content["pid_namespace"]),
        pid=int(content["pid"]),
        start_time=int(content["start_time"]),
    )


def _by_partition(replicas: Mapping[int, Sequence[int]]) -> dict[str, list[int]]:
    return {str(partition): list(members) for partition, members in sorted(replicas.items())}


def _partitions(content: Mapping[str, Sequence[int]]) -> dict[int, tuple[int, ...]]:
    return {int(partition): tuple(map(int, members)) for partition, members in sorted(content.items())}
