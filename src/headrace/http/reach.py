"""The cluster, as every route reaches it: over the wire, by clients that are made once and shared."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Final

from fastapi import Depends, Request

from headrace.client.wire.brokers import Brokers
from headrace.http.settings import GatewaySettings

if TYPE_CHECKING:
    from headrace.client.admin.admin import Admin
    from headrace.client.admin.topics import TopicAdmin
    from headrace.client.cluster.cluster import Cluster
    from headrace.client.groups.admin import GroupAdmin

CHECK_S: Final = 3.0  # for a broker to say that it is there
SPARE: Final = 8  # connections that are kept for the next request
LONGEST_S: Final = 5.0  # that one broker may take for an answer of many parts
SILENCE_S: Final = 3.0  # after which another broker is asked what any of them knows


class Reach:
    """What is here waits for brokers: it is for routes that are a plain `def`, which run in threads."""

    def __init__(self, settings: GatewaySettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._brokers = Brokers(settings.bootstrap, answer_s=SILENCE_S, client_id="headrace-gateway")
        self._admin: Admin | None = None
        self._groups: GroupAdmin | None = None
        self._at_close: list[Callable[[], None]] = []

    @property
    def bootstrap(self) -> str:
        """What we were told, and the brokers we have heard of since: those we were told may be gone."""
        known = map(str, self._brokers.addresses)
        return ",".join(dict.fromkeys([*self.settings.bootstrap.split(","), *known]))

    def check(self) -> None:
        """Unreachable if no broker answers, at once: librdkafka would go on asking for half a minute."""
        self._brokers.any_metadata(within_s=SILENCE_S)

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
    def live(self) -> Brokers:
        """The brokers of the cluster, for any number of threads."""
        return self._brokers

    @property
    def topics(self) -> "TopicAdmin":
        """Topics and settings."""
        from headrace.client.admin.topics import TopicAdmin  # noqa: PLC0415

        return TopicAdmin(self._brokers)

    @property
    def groups(self) -> "GroupAdmin":
        """Consumer groups."""
        from headrace.client.groups.admin import GroupAdmin  # noqa: PLC0415

        with self._lock:
            if self._groups is None:
                self._groups = GroupAdmin(self._brokers)
            return self._groups

    @contextmanager
    def cluster(self) -> "Iterator[Cluster]":
        """Brokers, leaders and moves."""
        from headrace.client.cluster.cluster import Cluster  # noqa: PLC0415

        with Cluster(self.bootstrap) as cluster:
            yield cluster

    @contextmanager
    def brokers(self, _answer_s: float = SILENCE_S) -> Iterator[Brokers]:
        """The brokers of the cluster, for requests of the protocol."""
        yield self._brokers

    def at_close(self, close: Callable[[], None]) -> None:
        """Have this called when the gateway parts from the cluster: what was called for last goes first."""
        self._at_close.append(close)

    def close(self) -> None:
        """Part from the cluster."""
        for close in reversed(self._at_close):
            close()
        with self._lock:
            if self._admin is not None:
                self._admin.close()
        self._brokers.close()


def reach_of(request: Request) -> Reach:
    reach = request.app.state.reach
    assert isinstance(reach, Reach)
    return reach


Reached = Annotated[Reach, Depends(reach_of)]
"""What a route asks for to get at the cluster:  def topics(reach: Reached) -> …"""
