"""The records of a producer in flight: polling librdkafka, waiting for records, counting them."""

import ctypes
import math
import os
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Final, NoReturn
from weakref import WeakMethod

from confluent_kafka import KafkaException

from headrace.client.errors import ClientError, Closed
from headrace.client.producer.delivery import Counts, Ledger, Tally
from headrace.client.producer.gate import Gate

FLUSH_S: Final = 0.1  # how long to flush at a time, between checks of the other threads
ROOM_S: Final = 0.1  # how long to wait at a time for room in the buffer
_BREAKS: Final = 100  # errors in a row among reports; usually there is one, which is fatal


class Flight:
    """The records in flight of one producer, for any number of threads."""

    def __init__(self, client: Any, ledger: Ledger, gate: Gate, *, receipts: bool) -> None:
        """With `receipts` librdkafka reports each record, else only failed ones."""
        self.client = client
        self.sent = Tally()
        self._ledger = ledger
        self._gate = gate
        self._receipts = receipts
        self._final: Counts | None = None  # after the end

    def poll(self, timeout_s: float = 0) -> None:
        """Poll librdkafka, which calls the callbacks of reported records."""
        self.serve(timeout_s)
        self._ledger.raise_what_callbacks_raised()

    def serve(self, timeout_s: float) -> None:
        """Poll librdkafka; what callbacks raise is kept for later."""
        self._served(self.client.poll, timeout_s)

    def wait_for_room(self) -> None:
        """Poll for a moment; callers that need room repeat it."""
        if not self._gate.wait(ROOM_S):
            self.poll(ROOM_S)

    def flush(self, timeout_s: float | None) -> Counts:
        """Wait until every record sent so far is acknowledged; DeliveryFailed if one is not."""
        flush = self.client.flush
        sent = self.sent.total
        until_s = math.inf if timeout_s is None else time.monotonic() + timeout_s
        shut = False
        with ExitStack() as gate:
            while waiting := self._served(flush, max(0.0, min(FLUSH_S, until_s - time.monotonic()))):
                self._ledger.raise_what_callbacks_raised(at_once=False)
                if time.monotonic() >= until_s:
                    break
                if not shut and waiting <= self.sent.total - sent:  # all of them may be from other threads
                    gate.enter_context(self._gate.shut())
                    shut = True
        counts = self._counted(self.sent.total if waiting else sent, waiting)
        self._ledger.check(counts)
        return counts

    @property
    def counts(self) -> Counts:
        if self._final is not None:
            return self._final
        self._served(self.client.poll, 0)
        return self._counted(self.sent.total, len(self.client))

    def _counted(self, sent: int, queued: int) -> Counts:
        """`queued` is the length of librdkafka's queue: records, and sometimes log lines."""
        failed = min(sent, self._ledger.failed)
        if self._receipts:
            acknowledged = min(sent - failed, self._ledger.acknowledged)
            return Counts(sent, acknowledged, failed, min(queued, sent - failed - acknowledged))
        waiting = min(queued, sent - failed)
        return Counts(sent, sent - failed - waiting, failed, waiting)

    # -- the end -------------------------------------------------------------------------------

    def stop(self) -> bool:
        """Refuse new records; returns False if they were refused already."""
        return self.client is not _PARENTS and self._gate.end()

    def end(self, timeout_s: float | None) -> None:
        """Flush, and drop records that are not acknowledged in time."""
        try:
            self.flush(timeout_s)
        finally:
            self.client.purge()
            self._served(self.client.flush, ROOM_S)
            self._final = self.counts
            close_client(self.client)
            self.client = _GONE

    def leave(self) -> bool:
        """Replace locks in a forked child: the parent's threads that held them do not exist here."""
        if self.client is _GONE:
            return False
        # The client is never closed here: that would wait for threads that a fork does not copy.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.client))
        self.client = _PARENTS
        return True

    @property
    def left_behind(self) -> int:
        """Return how many records may be waiting, unless the producer is closed.

        librdkafka is not polled, as that would call user functions while Python collects garbage. So log
        lines in its queue may count as records, but never more than were sent.
        """
        if isinstance(self.client, _Unusable):
            return 0
        return self._counted(self.sent.total, len(self.client)).waiting

    def _served(self, serve: Callable[[float], int], timeout_s: float) -> int:
        """Return what `serve` returns, which calls the callbacks of reported records.

        confluent-kafka raises a fatal error of librdkafka between or within the reports of records. A record
        whose report it breaks off has failed; the other reports come with the next call.
        """
        for _ in range(_BREAKS):
            try:
                return serve(timeout_s)
            except SystemError as error:
                if not isinstance(error.__cause__, KafkaException):
                    raise
                self._ledger.lost(error.__cause__.args[0])
            except KafkaException:
                continue  # it was raised between two reports
        raise Closed("producer")


def close_client(client: Any) -> None:
    """Close librdkafka's producer, which aborts its open transaction, without a warning if that fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            client.close()
        except KafkaException:  # a fatal error that no call has raised before
            client.close()


class _Unusable:
    """The client of a producer that is closed, or that was made before a fork."""

    def __init__(self, refuse: Callable[[], NoReturn]) -> None:
        self._refuse = refuse

    def __getattr__(self, _name: str) -> NoReturn:
        self._refuse()


def _refuse_closed() -> NoReturn:
    raise Closed("producer")


def refuse_after_fork(*_record: object) -> NoReturn:
    raise ClientError("this producer was made before the process forked: make one in the child")


_GONE: Final = _Unusable(_refuse_closed)
_PARENTS: Final = _Unusable(refuse_after_fork)  # librdkafka's threads do not survive a fork

_hooks: Final[list[WeakMethod[Callable[[], None]]]] = []


def call_after_fork(method: Callable[[], None]) -> None:
    """Call this method in every child that is forked from now on, while its object exists."""
    _hooks[:] = [hook for hook in _hooks if hook() is not None]
    _hooks.append(WeakMethod(method))


def _forked() -> None:
    for hook in _hooks:
        forked = hook()
        if forked is not None:
            forked()


os.register_at_fork(after_in_child=_forked)
