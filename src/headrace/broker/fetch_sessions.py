"""Incremental fetch sessions (KIP-227): a client names its partitions once and then only what changed.

Pure: no clock, no socket. A session is known by an id, and every request of it carries the next epoch:
0 opens a session, -1 closes it or does without, anything else goes on with it. In an incremental reply
a partition is left out if there is nothing new to say about it.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.protocol.schema.fetch import FetchRequest

NO_SESSION = 0
_FULL, _OPEN = -1, 0  # epochs
_MAX_EPOCH = 2**31 - 1


class SessionNotFound(KafkaError):
    code = ErrorCode.FETCH_SESSION_ID_NOT_FOUND


class WrongSessionEpoch(KafkaError):
    code = ErrorCode.INVALID_FETCH_SESSION_EPOCH


class SessionTopicIds(KafkaError):
    """One session cannot name topics by name and by id."""

    code = ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


@dataclass(slots=True)
class Wanted:
    """One partition that a client reads, from where and how much."""

    topic: str
    topic_id: bytes
    partition: int
    offset: int
    max_bytes: int
    leader_epoch: int
    last_epoch: int = -1  # of a follower: the epoch of its last record
    said: tuple[int, ...] | None = None  # what the last reply said of it

    @property
    def key(self) -> tuple[str, bytes, int]:
        return self.topic, self.topic_id, self.partition

    def is_news(self, error_code: int, watermarks: tuple[int, ...], has_data: bool) -> bool:
        """Whether an incremental reply must name this partition; remembers what it says."""
        saying = (error_code, *watermarks)
        news = has_data or error_code != 0 or saying != self.said
        self.said = saying if error_code == 0 else None
        return news


class FetchSession:
    """What one client reads."""

    def __init__(self, session_id: int, wanted: Iterable[Wanted], *, by_id: bool) -> None:
        self.id = session_id
        self.epoch = 1
        self.by_id = by_id
        self._wanted = {entry.key: entry for entry in wanted}

    @property
    def wanted(self) -> list[Wanted]:
        return list(self._wanted.values())

    def go_on(self, request: FetchRequest, *, by_id: bool) -> None:
        """Take in what an incremental request changes."""
        if by_id != self.by_id:
            raise SessionTopicIds("the session names topics the other way")
        if request.session_epoch != self.epoch:
            raise WrongSessionEpoch(
                f"session {self.id} is at epoch {self.epoch}, not {request.session_epoch}"
            )
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1
        for forgotten in request.forgotten_topics_data:
            for partition in forgotten.partitions:
                self._wanted.pop((forgotten.topic, forgotten.topic_id, partition), None)
        for entry in named(request):
            known = self._wanted.get(entry.key)
            entry.said = None if known is None else known.said
            self._wanted[entry.key] = entry

    def served(self, entry: Wanted) -> None:
        """Send a partition that got data to the end of the line, so that all get their turn."""
        if self._wanted.pop(entry.key, None) is not None:
            self._wanted[entry.key] = entry


@dataclass(frozen=True, slots=True)
class Plan:
    """What one request reads. Without a session every partition is answered for."""

    wanted: list[Wanted]
    session: FetchSession | None
    incremental: bool

    @property
    def session_id(self) -> int:
        return NO_SESSION if self.session is None else self.session.id


class FetchSessions:
    """The sessions of a broker, at most `slots`; the one used least recently makes room."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: dict[int, FetchSession] = {}

    def plan(self, request: FetchRequest, *, by_id: bool) -> Plan:
        """What `request` reads; KafkaError if it goes on with a session that is not there."""
        if request.session_epoch == _FULL:
            self._sessions.pop(request.session_id, None)
            return Plan(named(request), None, incremental=False)
        if request.session_epoch == _OPEN:
            self._sessions.pop(request.session_id, None)
            wanted = named(request)
            return Plan(wanted, self._open(wanted, by_id=by_id), incremental=False)
        session = self._sessions.pop(request.session_id, None)
        if session is None:
            raise SessionNotFound(f"there is no fetch session {request.session_id}")
        self._sessions[session.id] = session  # it is now the one used last
        session.go_on(request, by_id=by_id)
        return Plan(session.wanted, session, incremental=True)

    def _open(self, wanted: list[Wanted], *, by_id: bool) -> FetchSession | None:
        if self._slots == 0 or not wanted:
            return None
        while len(self._sessions) >= self._slots:
            del self._sessions[next(iter(self._sessions))]
        session_id = NO_SESSION
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = secrets.randbelow(2**31)
        session = self._sessions[session_id] = FetchSession(session_id, wanted, by_id=by_id)
        return session


def named(request: FetchRequest) -> list[Wanted]:
    """The partitions that a request names, each once: what is said of it last counts."""
    wanted: dict[tuple[str, bytes, int], Wanted] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            entry = Wanted(
                topic.topic,
                topic.topic_id,
                partition.partition,
                partition.fetch_offset,
                partition.partition_max_bytes,
                partition.current_leader_epoch,
                partition.last_fetched_epoch,
            )
            wanted[entry.key] = entry
    return list(wanted.values())
