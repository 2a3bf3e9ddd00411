"""The cluster, as every route reaches it: over the wire, by clients that are made once and shared."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Depends, Request

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import ANSWER_S, Address
from headrace.http.settings import GatewaySettings
from headrace.protocol.schema.metadata import MetadataRequest

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.cluster.cluster import Cluster
    from headrace.client.cluster.topics import TopicQuestions
    from headrace.client.groups.admin import GroupAdmin
    from headrace.client.wire.live_brokers import LiveBrokers

CHECK_S: Final = 3.0  # for a broker to say that it is there
SPARE: Final = 8  # connections that are kept for the next request
LONGEST_S: Final = 5.0  # that one broker may take for an answer of many parts
SILENCE_S: Final = 3.0  # after which another broker is asked what any of them knows


class Reach:
    """What is here waits for brokers: it is for routes that are a plain `def`, which run in threads."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._closed = False
        self._spare: dict[float, list[Brokers]] = {}  # by how long they wait for an answer
        self._admin: Admin | None = None
        self._live: LiveBrokers | None = None
        self._groups: GroupAdmin | None = None
        self._at_close: list[Callable[[], None]] = []
        self._known: tuple[Address, ...] = ()  # brokers that any of our clients has heard of

    @property
    def bootstrap(self) -> str:
        """What we were told, and the brokers we have heard of since: those we were told may be gone."""
        return ",".join(dict.fromkeys([*self.settings.bootstrap.split(","), *map(str, self._known)]))

    def check(self) -> None:
        """Unreachable if no broker answers, at once: librdkafka would go on asking for half a minute."""
        with self.brokers(SILENCE_S) as brokers:
            brokers.any(MetadataRequest(topics=[], allow_auto_topic_creation=False))

    @property
    def admin(self) -> "Admin":
        """Topics and settings, to be changed."""
        from headrace.client.admin.admin import Admin  # noqa: PLC0415  as the others: a gateway starts without

        self.check()
        with self._lock:
            if self._admin is None:
                self._admin = Admin(self.bootstrap)
            return self._admin

    @property
    def live(self) -> "LiveBrokers":
        """Brokers as they are now, for any thread: none of them is waited for for long."""
        from headrace.client.wire.live_brokers import LiveBrokers  # noqa: PLC0415

        with self._lock:
            if self._live is None:
                self._live = LiveBrokers(self.bootstrap, answer_s=LONGEST_S, client_id="headrace-gateway")
            return self._live

    @property
    def topics(self) -> "TopicQuestions":
        """Topics and settings, to be read."""
        from headrace.client.cluster.topics import TopicQuestions  # noqa: PLC0415

        return TopicQuestions(self.live)

    @property
    def groups(self) -> "GroupAdmin":
        """Consumer groups."""
        from headrace.client.groups.admin import GroupAdmin  # noqa: PLC0415

        if self._groups is None:  # it looks for the cluster by itself, each time that it is asked something
            groups = GroupAdmin(self.bootstrap, {"client.id": "headrace-gateway"})
            with self._lock:
                self._groups = self._groups or groups
        return self._groups

    @contextmanager
    def cluster(self) -> "Iterator[Cluster]":
        """Brokers, leaders and moves."""
        from headrace.client.cluster.cluster import Cluster  # noqa: PLC0415

        with Cluster(self.bootstrap) as cluster:
            yield cluster

    @contextmanager
    def brokers(self, answer_s: float = ANSWER_S) -> Iterator[Brokers]:
        """Brokers to be asked in Kafka's own words, by one thread at a time."""
        with self._lock:
            spare = self._spare.setdefault(answer_s, [])
            brokers = spare.pop() if spare else None
        if brokers is None:
            brokers = Brokers(self.bootstrap, answer_s=answer_s, client_id="headrace-gateway")
        brokers.know(self._known)
        try:
            yield brokers
        except BaseException:
            brokers.close()
            raise
        with self._lock:
            self._known = tuple(brokers.addresses)
            if len(spare) < SPARE and not self._closed:
                spare.append(brokers)
                return
        brokers.close()

    def at_close(self, close: Callable[[], None]) -> None:
        """Have this called when the gateway parts from the cluster: what was called for last goes first."""
        self._at_close.append(close)

    def close(self) -> None:
        """Part from the cluster."""
        for close in reversed(self._at_close):
            close()
        with self._lock:
            self._closed = True
            spare = [each for those in self._spare.values() for each in those]
            self._spare.clear()
            if self._live is not None:
                self._live.close()
        for brokers in spare:
            brokers.close()


def reach_of(request: Request) -> Reach:
    reach = request.app.state.reach
    assert isinstance(reach, Reach)
    return reach


Reached = Annotated[Reach, Depends(reach_of)]
"""What a route asks for to get at the cluster:  def topics(reach: Reached) -> …"""
