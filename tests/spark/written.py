"""Tables to write, and what other clients then find in the topics."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame

from spark.queries import OURS, Queries
from wire.confluent import make_topic, read
from wire.requests import fresh_name

SCHEMA: Final = "key binary, value binary, headers array<struct<key: string, value: binary>>"


class Found(NamedTuple):
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def new_topic(queries: Queries, name: str = "sunk", *, partitions: int = 1, **configs: str) -> str:
    topic = fresh_name(name)
    make_topic(queries.bootstrap, topic, partitions=partitions, **configs)
    return topic


def save(queries: Queries, table: DataFrame, connector: str = OURS, **options: Any) -> None:
    """Write the table; underscores stand for the dots of settings."""
    dotted = {name.replace("_", "."): value for name, value in options.items()}
    table.write.format(connector).options(**queries.options(dotted)).mode("append").save()


def found(queries: Queries, topic: str, partitions: int = 1) -> list[Found]:
    """Partition by partition, each in its order."""
    records = read(queries.bootstrap, topic, partitions=range(partitions))
    rows = [
        Found(each.partition(), each.key(), each.value(), tuple(each.headers() or ())) for each in records
    ]
    return sorted(rows, key=lambda each: each.partition)


def values(rows: Sequence[Found]) -> list[bytes | None]:
    return [each.value for each in rows]


def numbers(rows: Sequence[Found]) -> list[int]:
    """Their values, which are numbers, in the order of the numbers."""
    return sorted(int(each.value or b"") for each in rows)
