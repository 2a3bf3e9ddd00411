"""What authorization adds to a request: the same load on a broker without an authorizer and on one with ACLs.

The client is User:ANONYMOUS, who is no super user: every request is checked against the ACLs.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from compare import raw
from compare.drive import Source, drive
from compare.servers import MakeServer, Server
from compare.table import Expected, Figures, Line
from compare.wire import ask, make_batch, produce_request, request, topic_id
from compat.kafka_tools.server import client_settings
from headrace.client.wire.requests import metadata_request
from headrace.protocol.api import ApiKey

ACLS: Final = 100
SETTINGS: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    # For Kafka's controller, whose requests are anonymous as well. The topics have ACLs.
    "allow.everyone.if.no.acl.found": "true",
}
PREFIX: Final = "guarded-"
TOPICS: Final = [f"{PREFIX}{number}" for number in range(50)]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two brokers of one kind: `open` has no authorizer, `guarded` has one, and ACLs."""

    name: str
    open: Server
    guarded: Server


@contextmanager
def pair(name: str, make_open: MakeServer, make_guarded: MakeServer) -> Iterator[Pair]:
    with make_open() as first, make_guarded() as second:
        _create_acls(second)
        yield Pair(name, first, second)


def _create_acls(server: Server) -> None:
    admin: Any = AdminClient(client_settings(server.bootstrap))
    bindings = [_binding(PREFIX, "User:ANONYMOUS", AclOperation.ALL)]
    bindings += [_binding(f"team-{n}-", f"User:user-{n}", AclOperation.READ) for n in range(ACLS - 1)]
    for done in admin.create_acls(bindings).values():
        done.result(timeout=30)


def _binding(prefix: str, principal: str, operation: Any) -> Any:
    return AclBinding(
        ResourceType.TOPIC,
        prefix,
        ResourcePatternType.PREFIXED,
        principal,
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


class MetadataSource:
    """Asks for the same topics over and over; `prepare` has seen that all of them are described."""

    def __init__(self, topics: list[str]) -> None:
        self._frame = request(ApiKey.METADATA, metadata_request(topics))

    def next(self) -> bytes:
        return self._frame

    def answered(self, _frame: memoryview) -> int:
        return 1


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationLine:
    """A request with `checks` permissions to check; `source` makes the requests for a server."""

    source: Callable[[Server], Source]
    checks: int
    seconds: float

    def run(self, pair: Pair) -> Figures:
        without, guarded = (self.cpu_us(server) for server in (pair.open, pair.guarded))
        return {
            "CPU us/request": guarded,
            "without": without,
            "added CPU us": guarded - without,
            "us/check": (guarded - without) / self.checks,
        }

    def cpu_us(self, server: Server) -> float:
        source = self.source(server)
        cpu = server.cpu_seconds()
        done = drive(
            server.load,
            lambda _number: source,
            connections=4,
            depth=5,
            seconds=self.seconds,
            max_bytes=raw.MAX_BYTES,
        )
        return (server.cpu_seconds() - cpu) / done.requests * 1e6

    def line(self, name: str) -> Line[Pair]:
        return Line(
            name=name,
            run=self.run,
            expected=[
                Expected(figure="CPU us/request", beside="without"),
                Expected(figure="added CPU us"),
                Expected(figure="us/check", at_most=3.0, absolute=True),
            ],
        )


def prepare(pair: Pair, seconds: float) -> None:
    """Create the topics on both brokers, see that the client may use them, and warm the brokers up."""
    for server in (pair.open, pair.guarded):
        for topic in TOPICS:
            server.create_topic(topic)
        found = ask(server.address, metadata_request(TOPICS)).topics
        assert [each.error_code for each in found] == [0] * len(TOPICS), found
        for source in (_produce_source, _metadata_source):
            AuthorizationLine(source=source, checks=1, seconds=seconds / 4).cpu_us(server)


def lines(seconds: float) -> Iterator[Line[Pair]]:
    """A Produce needs one permission, and Metadata one for each topic."""
    yield AuthorizationLine(source=_produce_source, checks=1, seconds=seconds).line(
        f"authorization, produce 100 B, {ACLS} ACLs"
    )
    yield AuthorizationLine(source=_metadata_source, checks=len(TOPICS), seconds=seconds).line(
        f"authorization, metadata of {len(TOPICS)} topics, {ACLS} ACLs"
    )


def _produce_source(server: Server) -> Source:
    batch = make_batch(1, record_size=100)
    frame = produce_request(topic_id(server.address, TOPICS[0]), batch)
    return raw.ProduceSource(frame, len(batch.data))


def _metadata_source(_server: Server) -> Source:
    return MetadataSource(TOPICS)
