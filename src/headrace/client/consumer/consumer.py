"""Reading records: `headrace.Consumer`.

with Consumer("127.0.0.1:9092", "orders", group="billing", value=JSON) as consumer:
    for message in consumer:
        print(message.value)

A record is done when the loop requests the next one; done records are committed once a second and at the end.
A record whose processing raises is not committed, and comes again: to the next loop, or to the next consumer.
So each record is processed at least once.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

import confluent_kafka

from headrace.client.consumer.arguments import ENDS, Start, begins_of, check_most, offset_of, partition_list
from headrace.client.consumer.buffer import Buffer, Pace, Record
from headrace.client.consumer.decoding import Decoding, OnBad
from headrace.client.consumer.message import Batch, K, Message, V
from headrace.client.consumer.offsets import Offsets, TransactionOffsets
from headrace.client.consumer.source import POLL_S, Source
from headrace.client.consumer.subscription import Listener, Listeners, Subscription
from headrace.client.errors import BadSetting, ClientError, Closed, NotReadable
from headrace.client.hints import Hint, note_failure
from headrace.client.serializers.formats import AnyFormat
from headrace.client.settings import (
    Bootstrap,
    Settings,
    bootstrap_of,
    build,
    check_connection,
    check_functions,
    check_seconds,
    gather,
    said,
)
from headrace.protocol.ids import TopicPartition

NOBODY: Final = "headrace-nobody"  # librdkafka requires a group id even without a group
DEFAULTS: Final[Settings] = {
    "auto.commit.interval.ms": 1000,  # records done in this time are repeated after a kill -9
    "fetch.queue.backoff.ms": 10,  # librdkafka's default is a second whenever its queue is full
}

Answer = TypeVar("Answer")
Places = Sequence[TopicPartition | tuple[str, int]]


class Consumer(Generic[K, V]):
    """Reads topics: as a member of a group, or alone. For one thread at a time."""

    if not TYPE_CHECKING:
        poll = Hint("for message in consumer")

    def __init__(
        self,
        bootstrap: Bootstrap = None,
        topics: str | Sequence[str] = (),
        *,
        group: str | None = None,
        key: AnyFormat[K] | None = None,
        value: AnyFormat[V] | None = None,
        start: Start | None = None,
        auto_commit: bool | None = None,
        on_bad: OnBad = "raise",
        on_assigned: Listener | None = None,
        on_revoked: Listener | None = None,
        on_lost: Listener | None = None,
        registry: object = None,
        settings: Settings | None = None,
        **named: object,
    ) -> None:
        """Join `group`, whose members share the partitions, or read all partitions without one.

        `topics` may be regular expressions: "^orders-.*" (with a group). `start` is the first offset without
        a committed one: "earliest" (the default) or "latest". `key` and `value` are formats, as for the
        producer; a record that they cannot read is raised, skipped, or passed to `on_bad`. Callbacks get
        the partitions that were assigned, revoked or lost. Other keywords are librdkafka's settings:
        `fetch_min_bytes=1000`.
        """
        check_functions(on_assigned=on_assigned, on_revoked=on_revoked, on_lost=on_lost)
        named |= said(group_id=group, auto_offset_reset=start, enable_auto_commit=auto_commit)
        defaults = {**DEFAULTS, "auto.offset.reset": "earliest", "enable.auto.commit": True}
        given = gather(bootstrap, defaults=defaults, settings=settings, named=named)
        group_id = _group_of(given, auto_commit)
        self._start = ENDS.get(str(given["auto.offset.reset"]), ENDS["earliest"])
        # Only stored offsets are committed, and the ends of partitions are handled here.
        given |= {"enable.auto.offset.store": False, "enable.partition.eof": True}
        address = bootstrap_of(given)
        self._source: Source
        if callable(on_commit := given.get("on_commit")):
            given["on_commit"] = lambda *told: self._source.call(on_commit, *told)
        self._decoding = Decoding(key, value, registry, on_bad)
        client = build(confluent_kafka.Consumer, given)
        self._closed = False
        self._process = os.getpid()  # librdkafka's threads do not survive a fork
        try:
            check_connection(given)
            self._buffer, self._pace = Buffer(), Pace()
            cooperative = "cooperative" in str(given.get("partition.assignment.strategy", ""))
            incremental = cooperative or given.get("group.protocol") == "consumer"
            instance_id = None if incremental else given.get("group.instance.id")
            self._source = Source(
                client,
                address,
                self._buffer,
                start=self._start,
                incremental=incremental,
                static_member=instance_id and f"instance {instance_id} of group {group_id}",
            )
            auto_commits = str(given["enable.auto.commit"]).lower() in {"true", "t", "1"}
            automatic = group_id is not None and auto_commits
            self._offsets = Offsets(self._source, group_id, address, automatic=automatic)
            listeners = Listeners(on_assigned, on_revoked, on_lost)
            self._subscription = Subscription(
                self._source, self._offsets, listeners, start=self._start, alone=group_id is None
            )
            if topics:
                self.subscribe(topics)
        except BaseException:
            client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with note_failure(error):
            self.close()

    def close(self) -> None:
        """Commit done records, and leave the group, so that others take over at once. May be called again.

        If no broker takes the commit within a few seconds, Unreachable is raised.
        """
        if self._closed or self._process != os.getpid():
            return
        self._closed = True
        try:
            self._offsets.finish()
        finally:
            self._decoding.close()
        self._source.raise_what_callbacks_raised()

    def subscribe(self, topics: str | Sequence[str]) -> None:
        """Read these topics, and no others; NoSuchTopic if one does not exist."""
        self._check_open()
        self._subscription.subscribe(topics)

    def assign(self, places: "Places | Mapping[TopicPartition | tuple[str, int], int | Start]") -> None:
        """Read these partitions without a group: [("orders", 0)], or {("orders", 0): OFFSET}."""
        self._check_open()
        self._subscription.assign(begins_of(places, self._start))

    @property
    def assignment(self) -> list[TopicPartition]:
        """Return the partitions that are read now."""
        return sorted(self._source.assigned)

    def seek(self, topic: str, partition: int, offset: int | Start) -> None:
        """Continue at this offset, or at an end of the partition: "latest" is its current end."""
        (place,) = self._mine([(topic, partition)])
        self._offsets.move(place, offset_of(offset))

    def pause(self, places: Places | None = None) -> None:
        """Hand out nothing more of these partitions, or of all, until `resume`; keep iterating meanwhile."""
        self._offsets.pause(self._mine(places))

    def resume(self, places: Places | None = None) -> None:
        """Continue with these partitions, or with all, where they were paused."""
        self._offsets.resume(self._mine(places))

    def __iter__(self) -> Iterator[Message[K, V]]:
        return self.read()

    def read(
        self, *, stop_at_end: bool = False, idle_s: float | None = None, limit_s: float | None = None
    ) -> Iterator[Message[K, V]]:
        """Yield records one by one: without end, to the end of all partitions, until none comes for `idle_s`,
        or for `limit_s` altogether.
        """
        batches = self.fetches(stop_at_end=stop_at_end, idle_s=idle_s, limit_s=limit_s)
        return chain.from_iterable(
            self._decoding.messages(self._buffer.put(batch), batch) for batch in batches
        )

    def batches(
        self,
        most: int = 500,
        *,
        stop_at_end: bool = False,
        idle_s: float | None = None,
        limit_s: float | None = None,
    ) -> Iterator[Batch[K, V]]:
        """Yield up to `most` records at a time. A batch is done when the next one is requested."""
        for batch in self.fetches(most, stop_at_end=stop_at_end, idle_s=idle_s, limit_s=limit_s):
            yield from self.handing_out_batch(batch, self.decoded_batch(batch))

    def fetches(
        self,
        most: int | None = None,
        *,
        stop_at_end: bool = False,
        idle_s: float | None = None,
        limit_s: float | None = None,
        beats: bool = False,
    ) -> Iterator[list[Record]]:
        """Yield librdkafka's messages. The next step marks all before as done; a new iterator hands out the
        records in work again.

        With `beats` it yields an empty list a few times a second while there are no records.
        """
        check_most(most)
        check_seconds(idle_s=idle_s, limit_s=limit_s)
        now_s = time.monotonic()
        until_s = None if limit_s is None else now_s + limit_s
        idle_until_s = None if idle_s is None else now_s + idle_s
        self._offsets.again(self._decoding.refused)
        looked = False  # whether librdkafka was polled, which also handles rebalances
        while True:
            self._check_open()
            if not self._subscription.made:
                raise ClientError("the consumer has no topics: give it topics, or call subscribe or assign")
            self._pace.asked(now_s := time.monotonic())
            self._offsets.settle()
            if until_s is not None and now_s >= until_s:
                return
            size = most or self._pace.size
            found = self._buffer.rest()
            if not found:
                wait_s: float | None = POLL_S if until_s is None else until_s - now_s
                wait_s = self._until_end(wait_s, anew=not looked) if stop_at_end else wait_s
                if wait_s is None:
                    return
                found, looked = self._source.fetch(size, wait_s), True
            if found:
                self._buffer.keep(found[size:])
                self._pace.given(time.monotonic())
                yield found[:size]
                idle_until_s = None if idle_s is None else time.monotonic() + idle_s
            elif idle_until_s is not None and time.monotonic() >= idle_until_s:
                return
            elif beats:
                yield []

    def _until_end(self, wait_s: float | None, *, anew: bool) -> float | None:
        """Return how long to wait for records before the end; None if there are none.

        A new iterator (`anew`) polls once even at the end: a rebalance may wait for it.
        """
        if anew:
            self._source.look_for_ends()
        if not self._source.at_end:
            return wait_s
        return 0 if anew else None

    def decoded(self, batch: list[Record]) -> "list[Message[K, V] | NotReadable | None]":
        """Return the decoded batch, with NotReadable for errors and None for skipped records."""
        with self._put_back_if_raised(batch):
            return self._decoding.all(batch)

    def decoded_batch(self, batch: list[Record]) -> "tuple[Batch[K, V], NotReadable | None]":
        """Return the decoded batch up to the first error, and that error."""
        with self._put_back_if_raised(batch):
            return self._decoding.batch(batch)

    @contextmanager
    def _put_back_if_raised(self, batch: list[Record]) -> Iterator[None]:
        """Put the records back if decoding raises, for example because the schema registry is unreachable."""
        try:
            yield
        except BaseException:
            self.put_back(batch)
            raise

    def handing_out(self, batch: list[Record], found: Sequence[Answer]) -> Iterator[Answer]:
        """Yield `found`, decoded from `batch`, one by one; each is done when the next is requested.

        A seek drops the rest of the batch.
        """
        return (each for _, each in zip(self._buffer.put(batch), found, strict=False))

    def handing_out_batch(
        self, batch: list[Record], found: "tuple[Batch[K, V], NotReadable | None]"
    ) -> Iterator[Batch[K, V]]:
        """Yield the good records as one batch, then raise the error; the records after it come later."""
        good, bad = found
        count = len(batch) if bad is None else batch.index(bad.raw)
        self._buffer.keep(batch[count + 1 :])
        self._buffer.hand_out(batch[:count])
        if good:
            yield good
        if bad is not None:
            self._buffer.settle()
            self._buffer.hand_out([bad.raw])
            raise bad

    def put_back(self, batch: list[Record]) -> None:
        """Hand out these records next: the caller was cancelled before it got them."""
        self._buffer.settle()
        self._buffer.keep(batch)

    def commit(self, message: Message[K, V] | None = None, *, wait: bool = True) -> dict[TopicPartition, int]:
        """Commit all records that were handed out, the one in work included, or all up to `message`.

        Return the next offset of each partition that was committed. Without `wait` it returns at once, and
        the function of the setting `on_commit` gets the result.
        """
        self._check_open()
        if message is not None and not isinstance(message, Message):
            raise BadSetting(f"commit takes a message that was read, for all up to it, not {message!r:.80}")
        return self._offsets.commit(message, wait=wait)

    def enter_transaction(self) -> None:
        """Check that a transaction can commit the offsets: with a group, and without automatic commits."""
        self._check_open()
        self._offsets.enter_transaction()

    def transaction_offsets(self) -> TransactionOffsets:
        """Return the offsets after all records that were handed out."""
        self._check_open()
        return self._offsets.transaction_offsets()

    def transaction_committed(self, offsets: TransactionOffsets) -> None:
        """Note that these offsets are committed."""
        self._offsets.transaction_committed(offsets)

    def rewind(self, *, to_committed: bool) -> None:
        """Hand out the records of an aborted transaction again; `to_committed` if its outcome is unknown."""
        if not self._closed:
            self._offsets.rewind(to_committed=to_committed)

    def position(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition with a record handed out, or moved by `seek`."""
        return self._offsets.position()

    def committed(self, places: Places | None = None) -> dict[TopicPartition, int | None]:
        """Return the group's committed offsets of these partitions, or of all that are read here."""
        self._check_open()
        return self._offsets.committed(self.assignment if places is None else partition_list(places))

    def lag(self) -> dict[TopicPartition, int]:
        """Return how many records of each partition were not handed out yet."""
        self._check_open()
        return self._offsets.lag(from_start=self._start == ENDS["earliest"])

    def _mine(self, places: Places | None) -> list[TopicPartition]:
        """Return these partitions, or all; ClientError if one is not read here."""
        self._check_open()
        return self._subscription.own(self.assignment if places is None else partition_list(places))

    def _check_open(self) -> None:
        if self._closed:
            raise Closed("consumer")
        if self._process != os.getpid():
            raise ClientError("this consumer was made before the process forked: make one in the child")


def _group_of(given: dict[str, Any], auto_commit: bool | None) -> str | None:
    """Return the group's name; an empty one would make librdkafka abort the process."""
    group = given.setdefault("group.id", NOBODY)
    if group != NOBODY:
        if not isinstance(group, str) or not group:
            raise BadSetting("a group needs a name: group='billing', or none at all to read alone")
        return group
    if auto_commit:
        raise BadSetting("auto_commit needs a group to commit for: give group=NAME")
    given["enable.auto.commit"] = False
    return None
