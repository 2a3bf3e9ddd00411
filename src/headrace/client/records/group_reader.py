"""A reader as a member of a consumer group, for `headrace consume --group`."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

from headrace.client.consumer.buffer import partition_of
from headrace.client.consumer.consumer import Consumer
from headrace.client.records.one_by_one import BATCH, Record, record_of
from headrace.client.wire.connection_settings import Target
from headrace.protocol.ids import TopicPartition

SESSION_TIMEOUT_MS: Final = 10_000  # so soon others take over from a killed member; classic protocol only
CLIENT_ID: Final = "headrace"
FOR_PATTERNS: Final = {
    "topic.blacklist": "^__consumer_offsets$,^__transaction_state$",
    "topic.metadata.refresh.interval.ms": 5000,  # how soon a new topic that matches is found
}


class GroupReader(Consumer[bytes, bytes]):
    """Reads the partitions that are assigned to this member, from the group's committed offsets.

    with GroupReader("127.0.0.1:9092", "billing", ["orders"], from_beginning=True) as reader:
        for records in reader.record_batches():
            …
            reader.done(records)

    Only records that are done are committed, once a second and when the block ends, whatever ended it. So a
    record may come twice, but none is left out. A topic may be a regular expression: '^orders'. With the
    classic protocol `on_idle` is called when no partition is assigned to this member.
    """

    def __init__(
        self,
        target: Target,
        group: str,
        topics: Sequence[str],
        *,
        from_beginning: bool,
        stop_at_end: bool = False,
        protocol: Literal["classic", "consumer"] = "classic",
        instance_id: str | None = None,
        on_idle: Callable[[], None] = lambda: None,
    ) -> None:
        settings: dict[str, Any] = {
            "log_level": 0,
            "logger": _quiet(),
            "client.id": CLIENT_ID,
            "group.protocol": protocol,
            "fetch.wait.max.ms": 50 if stop_at_end else 500,
        }
        if protocol == "classic":
            settings["session.timeout.ms"] = SESSION_TIMEOUT_MS
        if instance_id is not None:
            settings["group.instance.id"] = instance_id
        if any(topic.startswith("^") for topic in topics):
            settings |= FOR_PATTERNS
        self._stop_at_end = stop_at_end
        self._stopping = False
        # Partitions of which a record has come, or the end is stored.
        self._begun: set[TopicPartition] = set()

        def assigned(partitions: list[TopicPartition]) -> None:
            if not partitions and protocol == "classic":  # otherwise it means that there is nothing more
                on_idle()

        super().__init__(
            target,
            topics,
            group=group,
            start="earliest" if from_beginning else "latest",
            on_assigned=assigned,
            on_revoked=self._begun.difference_update,
            settings=settings,
        )

    def record_batches(self) -> Iterator[list[Record]]:
        """Yield records, several at a time, until `stop`, or to the end with `stop_at_end`."""
        for messages in self.fetches(BATCH, stop_at_end=self._stop_at_end, beats=True):
            # First, as the end of a partition may arrive together with its records, which are not done yet.
            self._begun.update(map(partition_of, messages))
            self._store_ends()
            if self._stopping:
                return
            if messages:
                yield [record_of(message) for message in messages]
        self._store_ends()

    def done(self, records: Iterable[Record]) -> None:
        """Commit all up to these records soon; call it when they are processed."""
        self._offsets.store(
            {TopicPartition(record.topic, record.partition or 0): record.offset + 1 for record in records}
        )

    def stop(self) -> None:
        """Make `record_batches` end soon. May be called by a signal handler."""
        self._stopping = True

    def _store_ends(self) -> None:
        """Commit the end of partitions without a record to read.

        Otherwise a later member that begins at the end would skip records written meanwhile.
        """
        ends = {each: end for each, end in self._source.ends.items() if each not in self._begun}
        if ends:
            self._offsets.store(ends)
            self._begun.update(ends)


def _quiet() -> logging.Logger:
    """Return a logger without output: librdkafka would write fatal errors to stderr, which we report."""
    logger = logging.getLogger("headrace.client.librdkafka")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger
