"""A consumer of KIP-848, as Kafka's clients are; it takes one small step at a time."""

from contextlib import suppress
from typing import Any

from headrace.coordinators.group.consumer import LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH
from headrace.coordinators.group.consumer_protocol import Heartbeat, HeartbeatResult
from headrace.coordinators.group.errors import (
    FencedInstance,
    FencedMemberEpoch,
    GroupError,
    GroupIdNotFound,
    GroupIsFull,
    StaleMemberEpoch,
    UnknownMember,
    UnreleasedInstance,
)
from property.group_clients.world import Disconnected, Partition, World
from support.groups import CLIENT, commit_request


class ConsumerClient:
    """Heartbeats; gives up what it is not assigned any more; says what it has when that has changed."""

    def __init__(
        self, world: World, member_id: str, topics: frozenset[str], instance_id: str | None, **some: Any
    ) -> None:
        self.world = world
        self.member_id = member_id
        self.topics = topics
        self.expression: str | None = some.get("expression")
        self.assignor: str | None = some.get("assignor")
        self.instance_id = instance_id
        self.is_alive = True
        self.epoch = 0
        self.owned: set[Partition] = set()
        self.assigned: set[Partition] = set()  # is what it was told last
        self.claims: set[Partition] = set()
        self.said: set[Partition] | None = None  # is what it told last, if it knows that this arrived
        self.says_all = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.member_id}, {self.epoch}, owned={sorted(self.owned)})"

    # -- steps ---------------------------------------------------------------------------------

    def step(self) -> None:
        if self.owned != self.assigned:
            self.reconcile()
        else:
            self.beat()

    def reconcile(self) -> None:
        """Give up what is not its own any more, begin with what is new."""
        self.owned = set(self.assigned)

    def beat(self, *, answer_is_lost: bool = False) -> None:
        request = self._request()
        answer: HeartbeatResult | None = None
        try:
            answer = self.world.serve(lambda: self.world.beat(request))
        except Disconnected:
            answer_is_lost = True
        except GroupError as error:
            self._refused(error)
            return
        if request.owned is not None:
            self.claims = _partitions(request.owned)
        if answer is None or answer_is_lost:
            self.says_all = True
        else:
            self._take(request, answer)
        self.world.check()

    def _request(self) -> Heartbeat:
        request = Heartbeat("g", self.member_id, self.epoch, CLIENT, self.instance_id)
        if self.says_all or self.epoch == 0:
            request = request._replace(
                rebalance_timeout_ms=60_000,
                topics=self.topics,
                expression=self.expression or "",
                assignor=self.assignor,
            )
        if self.says_all or self.said != self.owned:
            # It says that it has no more than this; so it must not take what it was told before that.
            self.assigned = set(self.owned)
            request = request._replace(owned=_assignment(self.owned))
        return request

    def _take(self, request: Heartbeat, answer: HeartbeatResult) -> None:
        self.says_all = False
        self.epoch = answer.epoch
        if request.owned is not None:
            self.said = _partitions(request.owned)
        if answer.assignment is not None:
            self.assigned = _partitions(answer.assignment)
            self.claims |= self.assigned

    def _refused(self, error: GroupError) -> None:
        self.says_all = True
        match error:
            case FencedMemberEpoch() | UnknownMember() | GroupIdNotFound():
                self._lose_all()
            case UnreleasedInstance():
                assert self.epoch == 0  # it tries again until its former self is forgotten
            case StaleMemberEpoch():
                pass  # of a commit
            case GroupIsFull():
                self.die()
            case _:
                raise error

    def _lose_all(self) -> None:
        self.epoch = 0
        self.says_all = True
        self.owned, self.assigned, self.claims, self.said = set(), set(), set(), None

    # -- other things that clients do ----------------------------------------------------------

    def lose_answer(self) -> None:
        """It sends a heartbeat, and hears nothing."""
        self.beat(answer_is_lost=True)

    def subscribe(self, topics: frozenset[str]) -> None:
        self.topics = topics
        self.says_all = True

    def commit(self, offset: int) -> None:
        known = [(self.world.topics.names.get(topic), number) for topic, number in sorted(self.owned)]
        places = [(topic, number, offset) for topic, number in known if topic is not None]
        if self.epoch > 0 and places:
            request = commit_request(places[:1], self.member_id, self.epoch)
            try:
                self.world.serve(lambda: self.world.commit(request))
            except Disconnected:
                return
            except GroupError as error:
                self._refused(error)

    def leave(self) -> None:
        """A static member says that it will be back."""
        epoch = LEAVE_GROUP_MEMBER_EPOCH if self.instance_id is None else LEAVE_GROUP_STATIC_MEMBER_EPOCH
        request = Heartbeat("g", self.member_id, epoch, CLIENT, self.instance_id)
        is_member = self.epoch > 0
        self.die()
        if is_member:
            with suppress(Disconnected, UnknownMember, FencedInstance, GroupIdNotFound):
                self.world.serve(lambda: self.world.beat(request))

    def die(self) -> None:
        self.is_alive = False
        self._lose_all()

    def was_fenced(self) -> None:
        """It is no member any more. It need not have heard, but nobody has to wait for it."""
        self.claims = set()

    def group_was_upgraded(self, assigned: set[Partition]) -> None:
        """It is not told, and need not know."""

    def topic_is_gone(self, name: str) -> None:
        """Its next heartbeats tell it."""

    @property
    def is_settled(self) -> bool:
        return self.epoch > 0 and self.owned == self.assigned and not self.says_all

    @property
    def reads(self) -> set[Partition]:
        return self.owned


def _partitions(assignment: Any) -> set[Partition]:
    return {(topic_id, number) for topic_id, numbers in assignment.items() for number in numbers}


def _assignment(partitions: set[Partition]) -> dict[bytes, frozenset[int]]:
    found: dict[bytes, set[int]] = {}
    for topic_id, number in partitions:
        found.setdefault(topic_id, set()).add(number)
    return {topic_id: frozenset(numbers) for topic_id, numbers in found.items()}
