"""What all administration shares: a client, waiting for its answers, and where logs begin and end."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Final, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from headrace.client.errors import ClientError, check_reachable, translate

TIMEOUT_S: Final = 30.0

Answer = TypeVar("Answer")

_NOT_THERE: Final = {
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,  # noqa: SLF001  librdkafka's own codes begin with an underscore
    KafkaError._UNKNOWN_PARTITION,  # noqa: SLF001
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,  # it has a new one any moment
}


class Place(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Connection:
    """A connection for administration. Every call waits for its answer, or raises a ClientError."""

    def __init__(self, bootstrap: str, options: Mapping[str, str] | None = None) -> None:
        """`options` are librdkafka's: what a secured cluster wants to know."""
        check_reachable(bootstrap)
        self._bootstrap = bootstrap
        # Kept for as long as this object: futures of a client that is gone never come to an end.
        self._client = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **(options or {})})

    def _offsets(self, places: Iterable[Place], which: OffsetSpec) -> Mapping[Place, int | None]:
        """The offset that `which` stands for in each partition; None where it has no leader to ask."""
        asked = {TopicPartition(*place): which for place in places}
        if not asked:
            return {}
        futures = self._ask(
            "the offsets",
            lambda: self._client.list_offsets(
                asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=TIMEOUT_S
            ),
        )
        return {
            Place(asked.topic, asked.partition): self._offset(asked.topic, future)
            for asked, future in futures.items()
        }

    def _offset(self, topic: str, future: "Future[object]") -> int | None:
        try:
            found = future.result(TIMEOUT_S + 5)
        except KafkaException as error:
            if error.args[0].code() in _NOT_THERE:
                return None
            raise translate(error, topic, self._bootstrap) from error
        offset = int(getattr(found, "offset", -1))
        return offset if offset >= 0 else None

    def _wait(self, what: str, ask: Callable[[], "Future[Answer]"]) -> Answer:
        return self._ask(what, lambda: ask().result(TIMEOUT_S + 5))

    def _wait_for_all(self, ask: Callable[[], "Mapping[str, Future[Answer]]"]) -> dict[str, Answer]:
        """The answers to what was asked at once, each about what it is named for."""
        futures = self._ask("the cluster", ask)
        return {
            what: self._ask(what, partial(future.result, TIMEOUT_S + 5)) for what, future in futures.items()
        }

    def _ask(self, what: str, ask: Callable[[], Answer]) -> Answer:
        try:
            return ask()
        except KafkaException as error:
            raise translate(error, what, self._bootstrap) from error
        except (ValueError, TypeError) as error:  # what librdkafka refuses to send
            raise ClientError(f"{what}: {error}") from error
