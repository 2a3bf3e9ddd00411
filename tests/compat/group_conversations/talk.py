"""One conversation with one broker: several connections, and everything that is said on them.

A conversation is a function of a Talk. It is held with two brokers, and what they answered is compared:

    @conversation(levels=range(4, 10))
    def a_member_that_has_left_is_unknown(talk: Talk) -> None:
        a = Member(talk, "a")
        a.enter()
        a.leave()
        a.heartbeat()

A level says which versions are spoken. At level n every API is at version n, or at the closest one that it
has: 0 is the oldest client there is, 10 the newest. The APIs of the new protocol (KIP-848) came with level 9,
as version 0.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from compat.group_conversations.transcript import Names, Step, lines
from headrace.protocol.message import Message
from headrace.protocol.schema.describe_groups import DescribeGroupsRequest
from headrace.protocol.schema.index import ApiKey
from wire.raw import RawClient

DEADLINE_S: Final = 20
Hear = Callable[[Any], Any]
"""Takes an answer in, and returns what is written down of it."""
_BORN_AT_LEVEL: Final = {ApiKey.CONSUMER_GROUP_HEARTBEAT: 9, ApiKey.CONSUMER_GROUP_DESCRIBE: 9}
_NEWEST_AT_KAFKA: Final = {ApiKey.DELETE_GROUPS: 2}  # of the server that we are compared with


class Talk:
    """A conversation as it goes on. Its groups and topics are called after `name` and the number `run`."""

    def __init__(
        self, bootstrap: str, name: str, level: int, topics: dict[str, bytes], *, run: int = 0
    ) -> None:
        self.bootstrap = bootstrap
        self.name = name
        self.level = level
        self.run = run
        self.topic_ids: dict[str, bytes] = {}
        self.names: Final = Names(bootstrap)
        for topic, topic_id in topics.items():
            self.meet_topic(topic, topic_id)
        self._steps: list[Step] = []
        self._idle: list[RawClient] = []
        self._open: list[RawClient] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for connection in self._open:
            connection.close()

    @property
    def prefix(self) -> str:
        return f"{self.name}.{self.level}.{self.run}."

    def called(self, name: str) -> str:
        """The name of a group or a topic that no other conversation uses. The empty name stays as it is."""
        return self.prefix + name if name else ""

    def meet_topic(self, name: str, topic_id: bytes) -> None:
        """Remember a topic; `name` means it from now on, and the topic that had the name is `name, once`."""
        if name in self.topic_ids:
            former = self.topic_ids[name]
            self.topic_ids[f"{name}, once"] = former
            self.names.topics[former] = f"{name}, once"
        self.topic_ids[name] = topic_id
        self.names.topics[topic_id] = name

    def version_of(self, request: type[Message]) -> int:
        key, versions = request.__api_key__, request.__codec__.versions
        assert key is not None, request
        wanted = self.level - _BORN_AT_LEVEL.get(ApiKey(key), 0)
        return min(max(wanted, versions[0]), _NEWEST_AT_KAFKA.get(ApiKey(key), versions[-1]))

    def call(self, who: str, request: Message, hear: Hear = lambda answer: answer) -> "Call":
        """Send a request whose answer may have to wait for others. When this returns it has arrived."""
        call = self._send(who, request, hear)
        self.settle()
        return call

    def ask(self, who: str, request: Message, hear: Hear = lambda answer: answer) -> Any:
        """Send a request and return its answer; `hear` returns what is written down of it."""
        return self._send(who, request, hear).answer()

    def ask_aside(self, request: Message) -> Any:
        """Ask what stays out of the transcript."""
        connection = self._take_connection()
        answer = connection.ask(request, self.version_of(type(request)))
        self.give_back(connection)
        return answer

    def until(self, what: str, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not after {DEADLINE_S} s\n{self.transcript()}"
            time.sleep(0.01)

    def settle(self) -> None:
        """Return when what was sent so far, on any connection, has reached the group coordinator.

        A broker that takes requests in the order of their arrival has taken those before a question that it
        answers; but what arrives in one moment it may take in any order. So ask twice.
        """
        for _ in range(2):
            self.ask_aside(DescribeGroupsRequest(groups=[self.called("nobody")]))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Keep what is said meanwhile out of the transcript."""
        steps, self._steps = self._steps, []
        try:
            yield
        finally:
            self._steps = steps

    def note(self, step: Step) -> None:
        self._steps.append(step)

    def state(self, who: str, what: str) -> None:
        """Write down what is no answer, but follows from answers."""
        self._steps.append(Step(who, "in all", self.level, what))

    def transcript(self) -> list[str]:
        return lines(self._steps, self.names)

    def _take_connection(self) -> RawClient:
        if not self._idle:
            self._idle.append(RawClient(self.bootstrap))
            self._open.append(self._idle[-1])
        return self._idle.pop()

    def give_back(self, connection: RawClient) -> None:
        self._idle.append(connection)

    def _send(self, who: str, request: Message, hear: Hear) -> "Call":
        connection, version = self._take_connection(), self.version_of(type(request))
        connection.send(request, version)
        return Call(self, who, request, version, connection, hear)


@dataclass(slots=True)
class Call:
    """A request on its way."""

    talk: Talk
    who: str
    request: Message
    version: int
    connection: RawClient
    hear: Hear

    def has_answer(self) -> bool:
        return self.connection.has_something_to_read()

    def answer(self) -> Any:
        """Wait for the answer, and write it down."""
        answer = self.hear(self.connection.receive(self.request, self.version))
        self.talk.give_back(self.connection)
        api = type(self.request).__name__.removesuffix("Request")
        self.talk.note(Step(self.who, api, self.version, answer))
        return answer
