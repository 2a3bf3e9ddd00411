"""What handlers may use of their broker: its components, without sockets and without its life cycle."""

import asyncio
import time
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from headrace.broker.coordinators.groups import Groups
from headrace.broker.coordinators.producer_ids import ProducerIds
from headrace.broker.coordinators.runtime import CoordinatorHost, CoordinatorRuntime
from headrace.broker.coordinators.transactions import Transactions
from headrace.broker.errors import NotLeader, UnknownTopicId
from headrace.broker.image import ClusterImage
from headrace.broker.membership.controller_client import ControllerClient
from headrace.broker.membership.controller_election import ControllerElection
from headrace.broker.membership.lease import Lease
from headrace.broker.meters import Meters
from headrace.broker.network.connections import Connections
from headrace.broker.network.fair_queue import FairQueue
from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.records.appends import Appends
from headrace.broker.records.fetch_sessions import FetchSessions
from headrace.broker.records.inspections import Inspections
from headrace.broker.records.reads import Reads
from headrace.broker.replicas.partition import Partition
from headrace.broker.replicas.replicas import Replicas
from headrace.broker.schemas.validation import Schemas
from headrace.broker.security.acl_store import AclStore
from headrace.broker.security.audit import AuditLog
from headrace.broker.security.authentication import Authentication
from headrace.broker.security.tls import BrokerTls
from headrace.broker.security.token_store import TokenStore
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.slices import at_once
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.buffer_pool import BufferPool
from headrace.protocol.fields import Buffer
from headrace.protocol.ids import TopicPartition
from headrace.protocol.kafka_errors import SecurityDisabled, UnknownTopicOrPartition
from headrace.replication.controller.config_admin import ConfigAdmin
from headrace.replication.controller.runner import Controller
from headrace.replication.controller.topic_admin import TopicAdmin
from headrace.security.authorization import Authorizer
from headrace.security.delegation_tokens import TokensDisabled
from headrace.security.listeners import Endpoint
from headrace.storage.directory import LogDirectory
from headrace.storage.errors import LogOffline


class Coordinators:
    """Every coordinator by its name, for handlers, and all of them by iteration, for the broker."""

    def __init__(self, host: CoordinatorHost) -> None:
        self.groups = Groups(host)
        self.transactions = Transactions(host)
        self.by_topic: dict[str, CoordinatorRuntime[Any]] = {
            coordinator.topic.name: coordinator for coordinator in (self.groups, self.transactions)
        }

    def __iter__(self) -> Iterator[CoordinatorRuntime[Any]]:
        return iter(self.by_topic.values())


class BrokerServices:
    """The components of a broker. `Broker` creates, starts and stops them."""

    config: BrokerConfig
    broker_id: int
    endpoints: list[Endpoint]
    """What clients are told to connect to, with the ports that are really bound."""
    handlers: Mapping[int, Any]
    """What answers the requests of connections, by API key (`dispatch.Handler`)."""
    ready: asyncio.Event
    """Set once the controller has sent the cluster's metadata."""
    tls: BrokerTls
    authentication: Authentication
    authorizer: Authorizer
    audit: AuditLog
    acls: AclStore | None
    """None if authorizer.class.name is empty, so that everybody may do everything."""
    tokens: TokenStore | None
    """None if delegation.token.secret.key is not set."""
    quotas: ClientQuotas
    image: ClusterImage
    session: ZooKeeperSession
    logs: LogDirectory
    buffers: BufferPool
    connections: Connections
    replicas: Replicas
    fetch_sessions: FetchSessions
    inspections: Inspections
    appends: Appends
    reads: Reads
    schemas: Schemas
    meters: Meters
    lease: Lease
    coordinators: Coordinators
    producer_ids: ProducerIds
    topic_admin: TopicAdmin
    config_admin: ConfigAdmin
    controller_client: ControllerClient
    election: ControllerElection | None
    started_s: float
    metadata_cache: dict[tuple[Hashable, ...], tuple[int, list[Buffer]]]
    """Encoded responses about all topics, with the version of the image that they were made from; one for
    each API version, listener, view of a principal and pair of flags."""
    fair_queue: FairQueue
    """Which connection is handled next, if more has arrived than one iteration of the event loop handles."""
    long_requests: asyncio.Lock
    """Held by the request, of any connection, that takes more than a slice."""

    _loop: asyncio.AbstractEventLoop

    def current_config(self) -> BrokerConfig:
        """Return the settings that are in force now, for components that outlive a change of them."""
        return self.config

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def groups(self) -> Groups:
        return self.coordinators.groups

    @property
    def transactions(self) -> Transactions:
        return self.coordinators.transactions

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        return self.replicas.partitions

    @property
    def broker_epoch(self) -> int:
        """The zxid of this broker's registration, which distinguishes it from earlier registrations."""
        return self.lease.broker_epoch

    @property
    def controller(self) -> Controller | None:
        """The controller, while this broker is elected."""
        return None if self.election is None else self.election.controller

    @property
    def is_controller(self) -> bool:
        return self.controller is not None

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def partition(self, topic: str, index: int) -> Partition:
        """Return a partition of this broker, or raise the error that makes a client look elsewhere."""
        id_ = TopicPartition(topic, index)
        found = self.partitions.get(id_)
        if found is not None:
            return found
        known = self.image.topics.get(topic)
        if known is not None and id_ in self.logs.failed:
            raise LogOffline(self.logs.failed[id_])
        if known is None or index not in known.replicas:
            raise UnknownTopicOrPartition(f"there is no partition {topic}-{index}")
        raise NotLeader(f"{topic}-{index} has no replica on broker {self.broker_id}")

    def topic_name(self, topic_id: bytes) -> str:
        """Return the name of the topic with this id, or raise UnknownTopicId."""
        try:
            return self.image.topic_names[topic_id]
        except KeyError:
            raise UnknownTopicId("no topic has this id (UNKNOWN_TOPIC_ID)") from None

    def ensure_authorizer(self) -> AclStore:
        """Return the ACLs of the cluster, or raise SecurityDisabled if there are none."""
        if self.acls is None:
            raise SecurityDisabled(
                "authorizer.class.name is not set, so there are no ACLs (SECURITY_DISABLED)"
            )
        return self.acls

    def ensure_tokens(self) -> TokenStore:
        """Return the delegation tokens of the cluster, or raise TokensDisabled."""
        if self.tokens is None:
            raise TokensDisabled("delegation.token.secret.key is not set (DELEGATION_TOKEN_AUTH_DISABLED)")
        return self.tokens

    def ensure_lease(self, partition: Partition) -> None:
        """Raise NotLeader if another broker may lead the partition by now."""
        self.lease.ensure(partition)

    def disk_failed(self) -> None:
        """Propose other leaders for the partitions whose logs have failed."""
        at_once(self.replicas.isr_changes.look_at_all())
