"""Observers of a pipeline's progress: its consumer groups, and a topic with the history."""

import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.errors import ClientError, TopicExists
from headrace.client.records.one_by_one import BEGINNING, Reader, Record, Start, Writer
from headrace.client.wire.connection_settings import ConnectionSettings, Target
from headrace.client.wire.security import Security
from headrace.pipeline.progress import RETENTION_MS, TOPIC, Progress
from headrace.pipeline.topics import MAX_REPLICAS
from headrace.spark.offsets import from_json
from headrace.tables.reader.cluster import ClusterConnections

NO_SETTINGS: Final[Mapping[str, str]] = {}


class Groups:
    """Commits the offsets of a query to the consumer group of its name after each batch."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = NO_SETTINGS) -> None:
        self._cluster = ClusterConnections(bootstrap, Security.of(client), timeout_s=5.0)

    def __call__(self, progress: Progress) -> None:
        if progress.event == "batch" and progress.offsets:
            offsets = from_json(progress.offsets)
            self._cluster.commit(progress.query, offsets)

    def close(self) -> None:
        self._cluster.close()


class History:
    """Writes progress to a topic, keyed by query."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = NO_SETTINGS) -> None:
        make_topic(bootstrap, client)
        self._target = ConnectionSettings(bootstrap, Security.of(client))
        self._client = client
        self._writer = Writer(self._target, TOPIC, client)

    def __call__(self, progress: Progress) -> None:
        try:
            self._writer.write(Record(key=progress.query.encode(), value=progress.encode()))
        except ClientError:  # the writer would report the same error again
            self._writer = Writer(self._target, TOPIC, self._client)
            raise

    def close(self) -> None:
        with contextlib.suppress(ClientError):  # the cluster may have been stopped first
            self._writer.flush()


def make_topic(bootstrap: str, client: Mapping[str, str] = NO_SETTINGS) -> None:
    """Create the topic of the history if it does not exist."""
    with contextlib.closing(ClusterConnections(bootstrap, Security.of(client))) as cluster:
        replicas = min(MAX_REPLICAS, cluster.brokers())
    with contextlib.suppress(TopicExists):
        Admin(bootstrap, client).create_topic(
            TOPIC, partitions=1, replicas=replicas, configs={"retention.ms": str(RETENTION_MS)}
        )


def history(target: Target, pipeline: str | None = None, *, last: int | None = None) -> Iterator[Progress]:
    """Yield the history of one pipeline, or of all, oldest first; `last` limits the records that are read."""
    start = BEGINNING if last is None else Start(last=last)
    with Reader(target, TOPIC, start, stop_at_end=True) as reader:
        for record in chain.from_iterable(reader.batches()):
            try:
                progress = Progress.decode(record.value or b"")
            except (ValueError, TypeError):  # not written by us, or by a later version
                continue
            if pipeline in {None, progress.pipeline}:
                yield progress
