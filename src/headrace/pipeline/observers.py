"""Who is told how a pipeline gets on: its consumer groups, and a topic that keeps it for history."""

import contextlib
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Final

from headrace.client.admin.admin import Admin
from headrace.client.errors import ClientError, TopicExists
from headrace.client.records.one_by_one import BEGINNING, Reader, Record, Start, Writer
from headrace.client.wire.security import Security
from headrace.pipeline.progress import TOPIC, Progress
from headrace.pipeline.topics import MOST_REPLICAS
from headrace.spark.cluster import Cluster
from headrace.spark.offsets import from_json

_KEPT_MS: Final = 7 * 24 * 3600 * 1000
NO_SETTINGS: Final[Mapping[str, str]] = {}


class Groups:
    """Commits what a query has processed to the group of its name, as soon as a batch is done."""

    def __init__(self, bootstrap: str, client: Mapping[str, str] = NO_SETTINGS) -> None:
        self._cluster = Cluster(bootstrap, Security.of(client), timeout_s=5.0)

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
        self._bootstrap = bootstrap
        self._client = client
        self._writer = Writer(bootstrap, TOPIC, client)

    def __call__(self, progress: Progress) -> None:
        try:
            self._writer.write(Record(key=progress.query.encode(), value=progress.encode()))
        except ClientError:  # it goes on saying so, about records of long ago
            self._writer = Writer(self._bootstrap, TOPIC, self._client)
            raise

    def close(self) -> None:
        with contextlib.suppress(ClientError):  # the cluster may be the first to go
            self._writer.flush()


def make_topic(bootstrap: str, client: Mapping[str, str] = NO_SETTINGS) -> None:
    """Let there be a topic for progress."""
    with contextlib.closing(Cluster(bootstrap, Security.of(client))) as cluster:
        replicas = min(MOST_REPLICAS, cluster.brokers())
    with contextlib.suppress(TopicExists):
        Admin(bootstrap, client).create_topic(
            TOPIC, partitions=1, replicas=replicas, configs={"retention.ms": str(_KEPT_MS)}
        )


def history(bootstrap: str, pipeline: str | None = None, *, last: int | None = None) -> Iterator[Progress]:
    """What is kept of one pipeline, or of all, oldest first; with `last`, only what is among the last."""
    start = BEGINNING if last is None else Start(last=last)
    with Reader(bootstrap, TOPIC, start, stop_at_end=True) as reader:
        for record in chain.from_iterable(reader.batches()):
            try:
                progress = Progress.decode(record.value or b"")
            except (ValueError, TypeError):  # it is somebody else's, or a later version's
                continue
            if pipeline in {None, progress.pipeline}:
                yield progress
