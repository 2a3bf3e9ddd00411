"""Incremental fetch sessions (KIP-227): a client names its partitions once, and then only changes.

Pure: no clock, no socket. Every request of a session carries the session id and the next epoch: 0 opens a
session, -1 closes it or fetches without one, any other epoch continues it. An incremental response omits
partitions without new data or changed offsets.

A session outlives its connection, so memory is bounded: by the number of sessions, by the partitions of one
session and of all, and by storing only partitions that exist. If there is no room, the response has session
id 0, and the next request of the client names all its partitions.
"""

import secrets
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from headrace.broker.slices import Steps
from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.security.principals import ANONYMOUS, Principal

NO_SESSION: Final = 0
SESSION_PARTITIONS: Final = 1 << 16
"""The maximum number of partitions of one session."""
ALL_PARTITIONS: Final = 1 << 18
"""The maximum number of partitions of all sessions: about 80 MB."""
MIN_EVICTION_MS: Final = 120_000
"""A session may be evicted when it has been unused for this time, or has existed for it; as in Kafka."""
_FULL, _OPEN = -1, 0  # epochs
_EVERY: Final = 64  # partitions between two yields
_MAX_EPOCH = 2**31 - 1


class SessionNotFound(KafkaError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class WrongSessionEpoch(KafkaError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class SessionTopicIds(KafkaError):
    """A session names its topics either by name or by id, not both."""

    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


PartitionKey = tuple[str, bytes, int]
"""The name or the id of a topic, the other one being empty, and the partition."""


@dataclass(slots=True)
class SessionPartition:
    """One partition of a Fetch request."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int = -1  # of a follower: the leader epoch of its last record
    last_response: tuple[int, ...] | None = None  # error code and offsets of the last response

    @property
    def key(self) -> PartitionKey:
        return self.topic, self.topic_id, self.partition

    def update_response(self, error_code: int, offsets: tuple[int, ...], has_data: bool) -> bool:
        """Remember the response; return whether an incremental response must contain the partition."""
        response = (error_code, *offsets)
        changed = has_data or error_code != 0 or response != self.last_response
        self.last_response = response if error_code == 0 else None
        return changed


Exists = Callable[[SessionPartition], bool]
"""Returns whether the partition exists in the cluster."""


class NamedPartitions(NamedTuple):
    """The session of a request, and the partitions that it names: all of them, or those that have changed."""

    session_id: int
    session_epoch: int
    partitions: list[SessionPartition]
    forgotten: Sequence[PartitionKey] = ()


class FetchSession:
    """The partitions that one client fetches."""

    def __init__(
        self,
        session_id: int,
        partitions: Iterable[SessionPartition],
        *,
        by_id: bool,
        privileged: bool,
        now_ms: int,
        principal: Principal = ANONYMOUS,
    ) -> None:
        self.id = session_id
        self.principal = principal
        self.epoch = 1
        self.by_id = by_id
        self.privileged = privileged  # a follower's
        self.created_ms = self.used_ms = now_ms
        self._partitions = {entry.key: entry for entry in partitions}

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def partitions(self) -> list[SessionPartition]:
        return list(self._partitions.values())

    def check(self, epoch: int, *, by_id: bool) -> None:
        """Raise unless a request with `epoch` is the next one of this session."""
        if by_id != self.by_id:
            raise SessionTopicIds(
                f"fetch session {self.id} names topics by {'id' if self.by_id else 'name'}, "
                f"the request by {'id' if by_id else 'name'} (FETCH_SESSION_TOPIC_ID_ERROR)"
            )
        if epoch != self.epoch:
            raise WrongSessionEpoch(
                f"fetch session {self.id} is at epoch {self.epoch}, the request names {epoch} "
                "(INVALID_FETCH_SESSION_EPOCH)"
            )

    def update(self, forgotten: Iterable[PartitionKey], changed: Iterable[SessionPartition]) -> Steps[None]:
        """Apply the changes of an incremental request."""
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1
        for number, key in enumerate(forgotten):
            if not number % _EVERY:
                yield
            self._partitions.pop(key, None)
        for number, entry in enumerate(changed):
            if not number % _EVERY:
                yield
            known = self._partitions.get(entry.key)
            entry.last_response = None if known is None else known.last_response
            self._partitions[entry.key] = entry

    def served(self, entry: SessionPartition) -> None:
        """Move a partition with data to the end of the order, so that all partitions are served."""
        if self._partitions.pop(entry.key, None) is not None:
            self._partitions[entry.key] = entry

    def value(self) -> tuple[bool, int]:
        """Return the precedence in eviction: followers over consumers, large sessions over small ones."""
        return self.privileged, len(self)


@dataclass(frozen=True, slots=True)
class Plan:
    """The partitions that one request fetches. A response without a session contains all of them."""

    partitions: list[SessionPartition]
    session: FetchSession | None
    incremental: bool
    session_id: int = NO_SESSION  # of the response: 0 without a session, or if it ends with this response


class FetchSessions:
    """The fetch sessions of a broker, at most `slots`."""

    def __init__(
        self,
        slots: int,
        *,
        session_partitions: int = SESSION_PARTITIONS,
        all_partitions: int = ALL_PARTITIONS,
    ) -> None:
        self._slots = slots
        self._session_partitions = session_partitions
        self._all_partitions = all_partitions
        self._sessions: dict[int, FetchSession] = {}  # in the order of their last use
        self._partition_count = 0  # of all sessions

    @property
    def partition_count(self) -> int:
        """The number of partitions of all sessions."""
        return self._partition_count

    def __len__(self) -> int:
        return len(self._sessions)

    def size_of(self, session_id: int) -> int:
        """Return the number of partitions of a session; 0 if there is none."""
        session = self._sessions.get(session_id)
        return 0 if session is None else len(session)

    def plan(
        self,
        named: NamedPartitions,
        *,
        by_id: bool,
        exists: Exists,
        privileged: bool,
        now_ms: int,
        principal: Principal = ANONYMOUS,
    ) -> Steps[Plan]:
        """Return the partitions to fetch; raise SessionNotFound if the principal has no such session."""
        session = self._sessions.get(named.session_id)
        if session is not None and session.principal != principal:
            session = None
        if named.session_epoch in {_FULL, _OPEN}:
            if session is not None:
                self._remove(session.id)
            opens = named.session_epoch == _OPEN
            partitions = named.partitions
            session = None
            if opens and partitions and (yield from _all_exist(partitions, exists)):
                session = self._open(
                    partitions, by_id=by_id, privileged=privileged, now_ms=now_ms, principal=principal
                )
            return Plan(
                partitions, session, incremental=False, session_id=session.id if session else NO_SESSION
            )
        if session is None:
            raise SessionNotFound(
                f"fetch session {named.session_id} does not exist (FETCH_SESSION_ID_NOT_FOUND)"
            )
        session.check(named.session_epoch, by_id=by_id)
        self._remove(session.id)  # a concurrent request of this session must not find it
        keeps = yield from _all_exist(named.partitions, exists)
        yield from session.update(named.forgotten, named.partitions)
        session.used_ms = now_ms
        keeps = keeps and self._has_room(len(session))
        if keeps:
            self._put(session)
        return Plan(
            session.partitions, session, incremental=True, session_id=session.id if keeps else NO_SESSION
        )

    def discard_new(self, plan: Plan) -> int:
        """Return the session id of an empty response; a session that the request has opened ends.

        The client cannot use it: it expects all partitions in the response to its first request.
        """
        if plan.incremental:
            return plan.session_id
        self._remove(plan.session_id)
        return NO_SESSION

    def _open(
        self,
        partitions: list[SessionPartition],
        *,
        by_id: bool,
        privileged: bool,
        now_ms: int,
        principal: Principal,
    ) -> FetchSession | None:
        """Return a new session, or None if there is no room and no session of less value to evict."""
        if self._slots == 0 or len(partitions) > self._session_partitions:
            return None
        if not self._make_room((privileged, len(partitions)), now_ms):
            return None
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = secrets.randbelow(2**31)
        session = FetchSession(
            session_id, partitions, by_id=by_id, privileged=privileged, now_ms=now_ms, principal=principal
        )
        self._put(session)
        return session

    def _make_room(self, value: tuple[bool, int], now_ms: int) -> bool:
        """Evict sessions as Kafka does: first unused ones, then older ones of lower precedence.

        A follower's session also evicts new sessions of consumers.
        """
        size = value[1]
        while self._sessions and not self._is_free(size):
            stalest = next(iter(self._sessions.values()))
            if now_ms - stalest.used_ms <= MIN_EVICTION_MS:
                break
            self._remove(stalest.id)
        if self._is_free(size):
            return True
        victims, slots, room = (
            [],
            self._slots - len(self._sessions),
            self._all_partitions - self._partition_count,
        )
        for session in sorted(self._evictable(privileged=value[0], now_ms=now_ms), key=FetchSession.value):
            if session.value() > value:
                return False
            victims.append(session)
            slots, room = slots + 1, room + len(session)
            if slots > 0 and room >= size:
                break
        else:
            return False
        for session in victims:
            self._remove(session.id)
        return True

    def _evictable(self, *, privileged: bool, now_ms: int) -> list[FetchSession]:
        return [
            session
            for session in self._sessions.values()
            if now_ms - session.created_ms > MIN_EVICTION_MS or (privileged and not session.privileged)
        ]

    def _is_free(self, size: int) -> bool:
        return len(self._sessions) < self._slots and self._has_room(size)

    def _has_room(self, size: int) -> bool:
        return size <= self._session_partitions and self._partition_count + size <= self._all_partitions

    def _put(self, session: FetchSession) -> None:
        self._remove(session.id)
        self._sessions[session.id] = session
        self._partition_count += len(session)

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partition_count -= len(session)


def _all_exist(partitions: Sequence[SessionPartition], exists: Exists) -> Steps[bool]:
    """Return whether all partitions of a request exist."""
    for number, entry in enumerate(partitions):
        if not number % _EVERY:
            yield
        if not exists(entry):
            return False
    return True
