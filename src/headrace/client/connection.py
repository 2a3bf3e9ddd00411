"""What all administration shares: a client, waiting for its answers, and where logs begin and end."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.client.errors import ClientError, Unreachable, check_reachable, translate
from headrace.client.wire.connection import CLIENT_ID
from headrace.client.wire.leader_offsets import read_offsets
from headrace.client.wire.live_brokers import QUESTION_S, LiveBrokers
from headrace.client.wire.security import Security
from headrace.client.wire.settling import Patience
from headrace.protocol.ids import TopicPartition

TIMEOUT_S: Final = 30.0

Answer = TypeVar("Answer")


class Connection:
    """A connection for administration. Every call waits for its answer, or raises a ClientError."""

    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        """`options` are librdkafka's: what a secured cluster wants to know."""
        check_reachable(bootstrap)
        self._bootstrap = bootstrap
        self._given = options or {}
        # Kept for as long as this object: futures of a client that is gone never come to an end.
        self._client = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "log_level": 0,
                "allow.auto.create.topics": False,  # or a question about a topic may make it
                **(options or {}),
            }
        )

    @cached_property
    def _live(self) -> LiveBrokers | None:
        """None if librdkafka knows ways in that we do not, and has been told to take one."""
        try:
            return live_brokers(self._bootstrap, self._given)
        except ClientError:
            return None

    def _offsets(
        self, places: Iterable[TopicPartition], which: OffsetSpec
    ) -> Mapping[TopicPartition, int | None]:
        """The offset that `which` stands for in each partition; None where it has no leader to ask.

        Asked by ourselves: librdkafka would go on asking a leader that has gone, for half a minute.
        """
        if self._live is None:
            return self._librdkafkas_offsets({RdkafkaPartition(*place): which for place in places})
        time_ms = which._value  # noqa: SLF001  it has no other way out
        settled = read_offsets(self._live, places, time_ms, Patience(QUESTION_S))
        for place, missing in settled.missing.items():
            if missing.soon:
                raise Unreachable(f"{place}: {missing.why}")
        return {**settled.answers, **dict.fromkeys(settled.missing)}

    def _librdkafkas_offsets(
        self, asked: Mapping[RdkafkaPartition, OffsetSpec]
    ) -> dict[TopicPartition, int | None]:
        if not asked:
            return {}
        futures = self._ask(
            "the offsets", lambda: self._client.list_offsets(dict(asked), request_timeout=TIMEOUT_S)
        )
        found = {
            TopicPartition(each.topic, each.partition): self._ask(
                each.topic, partial(future.result, TIMEOUT_S + 5)
            )
            for each, future in futures.items()
        }
        return {place: each.offset if each.offset >= 0 else None for place, each in found.items()}

    def _wait(self, what: str, ask: Callable[[], "Future[Answer]"]) -> Answer:
        return self._ask(what, lambda: ask().result(TIMEOUT_S + 5))

    def _ask(self, what: str, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except KafkaException as error:
            raise translate(error, what, self._bootstrap) from error
        except (ValueError, TypeError) as error:  # what librdkafka refuses to send
            raise ClientError(f"{what}: {error}") from error


def live_brokers(bootstrap: str, options: Mapping[str, Any]) -> LiveBrokers:
    """The brokers of a cluster, with what librdkafka's settings say of who we are and whom we believe."""
    given = {name: str(value) for name, value in options.items()}
    return LiveBrokers(bootstrap, client_id=given.get("client.id", CLIENT_ID), security=Security.of(given))
