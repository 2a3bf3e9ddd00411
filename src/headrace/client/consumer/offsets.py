"""The offsets of a consumer: commits, positions, lag, seek and pause."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_STORED, KafkaError, KafkaException
from confluent_kafka import TopicPartition as RdkafkaPartition

from headrace.client.consumer.buffer import Record, partition_of
from headrace.client.consumer.message import Message
from headrace.client.consumer.moves import with_ends
from headrace.client.consumer.source import Source
from headrace.client.errors import BadSetting, ClientError, TransactionAborted, Unreachable
from headrace.client.librdkafka_errors import translate
from headrace.protocol.ids import TopicPartition
from headrace.system.background import BackgroundThread


class LastCommit:
    """The commit before a close, in a thread. After the timeout, that thread closes the client later."""

    def __init__(self, commit: Callable[[], object], close: Callable[[], object]) -> None:
        self.left = False
        self._commit, self._close = commit, close
        self._error: Exception | None = None
        self._over = False
        self._lock = Lock()
        self._thread = BackgroundThread(self._run, name="headrace-commit", stop=None)

    def run(self, timeout_s: float) -> bool:
        """Commit and close; return False if the thread is still committing after the timeout."""
        self._thread.start()
        try:
            self._thread.join(timeout_s)
        finally:  # after Ctrl-C, too
            with self._lock:
                self.left = not self._over
            if not self.left:
                self._close()
        if self._error is not None:
            raise self._error
        return not self.left

    def _run(self) -> None:
        try:
            self._commit()
        except Exception as error:  # noqa: BLE001  `run` raises it
            self._error = error
        with self._lock:
            self._over = True
        if self.left:
            self._close()


TIMEOUT_S: Final = 30.0
CLOSE_S: Final = 5.0  # for the last commit

Answer = TypeVar("Answer")


class TransactionOffsets(NamedTuple):
    """Offsets for `send_offsets_to_transaction`, and librdkafka's metadata of the group."""

    partitions: list[RdkafkaPartition]
    group: Any


class Offsets:
    """The offsets of one consumer. librdkafka commits stored offsets periodically, `commit` at once."""

    def __init__(self, source: Source, group: str | None, bootstrap: str, *, automatic: bool) -> None:
        self._source = source
        self._client = source.client
        self._buffer = source.buffer
        self._group = group
        self._bootstrap = bootstrap
        self._automatic = automatic
        self._stored: dict[TopicPartition, int] = {}
        self._said: dict[TopicPartition, int] = {}  # offsets that `commit` was called for
        self._sure: dict[TopicPartition, int] = {}  # those of them that a broker has acknowledged
        self._held, self._paused = source.held, source.paused
        self._last: LastCommit | None = None
        # Where the last committed transaction ended, else the first record; None without transactions.
        self._rewind_to: dict[TopicPartition, int] | None = None
        self._revoked: set[TopicPartition] = set()  # partitions with records of the open transaction

    def again(self, refused: Callable[[Record], bool]) -> None:
        """Hand out records in work again, for a new iterator, except committed ones and those that raised."""

        def is_done(record: Record) -> bool:
            return record.offset() < self._said.get(partition_of(record), 0) or refused(record)

        self._buffer.again(is_done)
        if self._paused:
            self._held |= self._buffer.drop(self._paused)

    def settle(self) -> None:
        """Mark all records that were handed out as done."""
        self._note_firsts()
        count, partitions = self._buffer.whole, self._source.assigned
        quicker = count > 10 * len(partitions) and not self._source.moved
        known = self._source.positions() if quicker else None
        reached = self._buffer.settle(known)
        if self._automatic:
            self.store(reached)

    def finish(self) -> None:
        """Commit done records, without the one in work, if commits are automatic; close the client."""
        if not self._automatic:
            self._client.close()
            return
        self.store(self._buffer.done())
        self._last = LastCommit(lambda: self._commit(None, wait=True), self._client.close)
        if not self._last.run(CLOSE_S):
            raise Unreachable(
                f"no broker at {self._bootstrap} acknowledged the offsets of group {self._group} within "
                f"{CLOSE_S:.0f} s; the last records may be read again"
            )

    @property
    def left(self) -> bool:
        """Whether a thread still commits, and will close the client."""
        return self._last is not None and self._last.left

    def commit(self, message: Message[Any, Any] | None, *, wait: bool) -> dict[TopicPartition, int]:
        """Commit all records that were handed out, or all up to this message."""
        if self._group is None:
            raise ClientError("this consumer has no group to commit for: make it with group=NAME")
        if message is None:
            reached = self._buffer.handed_out()
            reached = {partition: at for partition, at in reached.items() if at != self._sure.get(partition)}
        else:
            reached = {TopicPartition(message.topic, message.partition): message.offset + 1}
        for partition in reached.keys() - self._source.assigned:
            raise ClientError(
                f"{partition} is not assigned to this consumer any more: another one reads the record again"
            )
        self.store(reached)
        done = self._commit(reached, wait=wait) if reached else {}
        self._said |= reached
        if wait:
            self._note_committed(reached)
        return done

    def enter_transaction(self) -> None:
        """Prepare for a rewind; BadSetting if the offsets cannot be committed by a transaction."""
        if self._group is None or self._automatic:
            raise BadSetting(
                "offsets_of needs a consumer with a group: Consumer(..., group=NAME, auto_commit=False)"
            )
        if self._rewind_to is None:
            self._rewind_to = dict.fromkeys(self._buffer.settled(), OFFSET_STORED)
        self._note_firsts()

    def transaction_offsets(self) -> TransactionOffsets:
        """Return the next offsets after all records handed out; TransactionAborted if some were revoked."""
        if self._revoked:
            raise TransactionAborted(
                f"{', '.join(map(str, sorted(self._revoked)))}: revoked during the transaction "
                "(REBALANCE_IN_PROGRESS): another consumer reads its records again"
            )
        reached = [RdkafkaPartition(*partition, at) for partition, at in self._uncommitted().items()]
        return TransactionOffsets(reached, self._client.consumer_group_metadata() if reached else None)

    def transaction_committed(self, offsets: TransactionOffsets) -> None:
        done = {TopicPartition(each.topic, each.partition): each.offset for each in offsets.partitions}
        self._note_committed(done)

    def _note_committed(self, offsets: dict[TopicPartition, int]) -> None:
        self._said |= offsets
        self._sure |= offsets
        if self._rewind_to is not None:
            self._rewind_to |= offsets

    def rewind(self, *, to_committed: bool) -> None:
        """Hand out the records since the last committed transaction, or since the committed offset, again."""
        self._revoked.clear()
        for partition in self._uncommitted():
            begin = OFFSET_STORED if to_committed else (self._rewind_to or {}).get(partition, OFFSET_STORED)
            self.move(partition, begin)

    def _note_firsts(self) -> None:
        if self._rewind_to is not None and not self._source.assigned <= self._rewind_to.keys():
            self._rewind_to = self._buffer.firsts() | self._rewind_to

    def _uncommitted(self) -> dict[TopicPartition, int]:
        """Return the next offset of each partition with records handed out since the last transaction."""
        if self._rewind_to is None:
            return {}
        handed_out = self._buffer.handed_out().items()
        return {partition: at for partition, at in handed_out if at != self._rewind_to.get(partition)}

    def leave(self, partitions: Sequence[TopicPartition]) -> None:
        """Forget partitions that were revoked."""
        self._revoked |= self._uncommitted().keys() & set(partitions)
        for partition in partitions:
            for known in (self._stored, self._said, self._sure, self._held, self._rewind_to or {}):
                known.pop(partition, None)
            self._paused.discard(partition)
        self._source.lost(partitions)

    def move(self, partition: TopicPartition, offset: int) -> None:
        """Continue at `offset`, which may be committed even if it is before the committed one."""
        offset = self.ask(partition.topic, lambda: with_ends(self._client, {partition: offset}))[partition]
        for known in (self._stored, self._said, self._sure, self._rewind_to or {}):
            known.pop(partition, None)
        if partition in self._held:
            self._held[partition] = offset
            self._buffer.forget({partition})
        else:
            self._source.seek(partition, offset)

    def pause(self, partitions: Sequence[TopicPartition]) -> None:
        """Pause fetches; records that were fetched and not handed out are fetched again after `resume`."""
        self._held |= self._buffer.drop(set(partitions))
        self._paused.update(partitions)
        self.ask(
            "the partitions", lambda: self._client.pause([RdkafkaPartition(*each) for each in partitions])
        )

    def resume(self, partitions: Sequence[TopicPartition]) -> None:
        """Continue where the partitions were paused."""
        self.ask(
            "the partitions", lambda: self._client.resume([RdkafkaPartition(*each) for each in partitions])
        )
        self._paused.difference_update(partitions)
        for partition in partitions:
            if partition in self._held:
                self._source.go_on(partition, self._held.pop(partition))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        """Return the committed offsets of the group; None where there is none."""
        asked = [RdkafkaPartition(*partition) for partition in partitions]
        found = self.ask("the offsets", lambda: self._client.committed(asked, timeout=TIMEOUT_S))
        return {
            TopicPartition(each.topic, each.partition): each.offset if each.offset >= 0 else None
            for each in found
        }

    def lag(self, *, from_start: bool) -> dict[TopicPartition, int]:
        """Return how many records are after the position, or without one after the committed offset."""
        far: dict[TopicPartition, int | None] = {**self._source.sent_to(), **self._buffer.handed_out()}
        unknown = [
            partition
            for partition in self._source.assigned
            if far.get(partition, OFFSET_STORED) == OFFSET_STORED
        ]
        far |= dict.fromkeys(unknown) if self._group is None else self.committed(unknown)
        lags = {}
        for partition in sorted(self._source.assigned):
            low, high = self.ask(
                partition.topic,
                partial(self._client.get_watermark_offsets, RdkafkaPartition(*partition), timeout=TIMEOUT_S),
                is_topic=True,
            )
            start = low if from_start else high
            at = {None: start, OFFSET_BEGINNING: low, OFFSET_END: high}.get(far[partition], far[partition])
            lags[partition] = max(0, high - (at or 0))
        return lags

    def position(self) -> dict[TopicPartition, int]:
        known = {**self._source.sent_to(), **self._buffer.handed_out()}
        return {partition: offset for partition, offset in known.items() if offset >= 0}

    def ask(self, what: str, question: Callable[[], Answer], *, is_topic: bool = False) -> Answer:
        """Return librdkafka's answer, or raise its error as a ClientError about `what`."""
        try:
            return question()
        except KafkaException as error:
            raise translate(error, what, self._bootstrap, is_topic=is_topic) from error

    def store(self, reached: dict[TopicPartition, int]) -> None:
        """Have librdkafka commit these offsets soon, unless they are before what is stored already."""
        new = {partition: at for partition, at in reached.items() if at > self._stored.get(partition, -1)}
        if not new:
            return
        self._stored |= new
        # A partition may be revoked meanwhile: its new consumer processes these records again.
        with suppress(KafkaException):
            self._client.store_offsets(
                offsets=[RdkafkaPartition(*partition, at) for partition, at in new.items()]
            )

    def _commit(self, reached: dict[TopicPartition, int] | None, *, wait: bool) -> dict[TopicPartition, int]:
        what: dict[str, Any] = {}
        if reached is not None:
            what["offsets"] = [RdkafkaPartition(*partition, at) for partition, at in reached.items()]
        try:
            committed = self._client.commit(asynchronous=not wait, **what)
        except KafkaException as error:
            if error.args[0].code() == KafkaError._NO_OFFSET:  # noqa: SLF001  nothing new is stored
                return {}
            raise self._why(error) from error
        for each in committed or ():
            if each.error is not None:
                raise self._why(each.error)
        done = [each for each in committed or () if each.offset >= 0]  # the others have no record handed out
        return {TopicPartition(each.topic, each.partition): each.offset for each in done}

    def _why(self, error: KafkaException | KafkaError) -> ClientError:
        why = translate(error, f"group {self._group}", self._bootstrap, is_topic=False)
        return ClientError(f"{why}; nothing was committed, and the last records will be read again")
