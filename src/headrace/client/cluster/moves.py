"""Reassignments of partitions, and Kafka's JSON file for them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from headrace.client.errors import ClientError
from headrace.protocol.ids import TopicPartition

_ANYWHERE: Final = "any"  # log directory; our brokers have one


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """The new replicas of a partition, the preferred leader first."""

    topic: str
    partition: int
    replicas: tuple[int, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """A reassignment in progress. `replicas` has the old and the new ones."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def goes_on(self) -> Move:
        """The move that this reassignment carries out; requesting it again changes nothing."""
        return Move(topic=self.topic, partition=self.partition, replicas=self.target)


def read_plan(text: str, source: str) -> list[Move]:
    """Return the moves in a file for `kafka-reassign-partitions`; ClientError says what is wrong with it.

    {"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}]}
    """
    try:
        plan = json.loads(text)
    except json.JSONDecodeError as error:
        raise ClientError(f"{source} is not JSON: {error}") from None
    match plan:
        case {"version": 1, "partitions": [*entries]}:
            moves = [_move(entry, source) for entry in entries]
        case _:
            raise ClientError(f'{source}: expected {{"version": 1, "partitions": [...]}}')
    seen: set[TopicPartition] = set()
    for move in moves:
        if move.topic_partition in seen:
            raise ClientError(f"{source}: {move.topic_partition} is named twice")
        seen.add(move.topic_partition)
    if not moves:
        raise ClientError(f"{source}: there are no partitions in it")
    return moves


def plan_of(moves: Iterable[Move]) -> dict[str, Any]:
    """Return the moves as `read_plan` and Kafka's tool read them."""
    return {
        "version": 1,
        "partitions": [
            {"topic": move.topic, "partition": move.partition, "replicas": list(move.replicas)}
            for move in moves
        ],
    }


def _move(entry: object, source: str) -> Move:
    match entry:
        case {"topic": str(topic), "partition": int(partition), "replicas": [*replicas], **rest} if (
            replicas and all(type(replica) is int for replica in replicas)
        ):
            directories = rest.get("log_dirs")
            if isinstance(directories, list) and any(directory != _ANYWHERE for directory in directories):
                raise ClientError(
                    f"{source}: a broker has one directory here, so log_dirs can only be {_ANYWHERE!r}"
                )
            return Move(topic=topic, partition=partition, replicas=tuple(replicas))
    raise ClientError(
        f"{source}: {json.dumps(entry)[:200]} is no partition; expected "
        '{"topic": "orders", "partition": 0, "replicas": [1, 2, 3]}'
    )
