"""A consumer that speaks the classic protocol, as Kafka's clients do; it takes one small step at a time."""

from collections.abc import Callable
from enum import Enum, auto

from headrace.coordinators.group.decision import Join, Joined, Sync, Synced
from headrace.coordinators.group.errors import (
    FencedInstance,
    GroupError,
    GroupIdNotFound,
    GroupIsFull,
    IllegalGeneration,
    InconsistentProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMember,
)
from headrace.protocol.consumer_protocol import (
    ConsumerProtocolSubscription,
    decode_subscription,
    encode_subscription,
)
from headrace.protocol.schema.consumer_protocol_subscription import TopicPartition
from property.group_clients.assigning import Place, assign, by_topic, decode_places
from property.group_clients.world import Asked, Disconnected, Partition, World
from support.groups import commit_request, join_request, sync_request


class Phase(Enum):
    UNJOINED = auto()
    JOINING = auto()
    JOINED = auto()
    SYNCING = auto()
    STABLE = auto()


class ClassicClient:
    """Eager: gives up everything before it joins. Cooperative: only what it is not assigned any more."""

    def __init__(
        self, world: World, topics: frozenset[str], instance_id: str | None, *, cooperative: bool
    ) -> None:
        self.world = world
        self.topics = topics
        self.instance_id = instance_id
        self.cooperative = cooperative
        self.is_alive = True
        self.member_id = ""
        self.generation = -1
        self.phase = Phase.UNJOINED
        self.waiter: Asked | None = None
        self.owned: set[Place] = set()
        self.claims: set[Partition] = set()
        self.granted: set[Partition] = set()  # by a consumer group
        self.seen_topics: int | None = None  # by a leader, when it assigned
        self.joined_for = topics
        self.joined: Joined | None = None

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.member_id or '?'}, {self.phase.name}, owned={sorted(self.owned)})"
        )

    # -- steps ---------------------------------------------------------------------------------

    def step(self) -> None:
        """Do what a client does next."""
        if self.waiter is not None:
            self._look_for_answer()
        elif self.phase is Phase.UNJOINED:
            self.join()
        elif self.phase is Phase.JOINED:
            self._sync()
        elif self.has_to_rejoin:
            self.phase = Phase.UNJOINED
        else:
            self._heartbeat()

    def join(self) -> None:
        if not self.cooperative:
            self.owned = set()
        self.seen_topics, self.joined_for = None, self.topics
        owned = self.world.partitions(self.owned)
        request = join_request(
            self.member_id,
            self.instance_id,
            protocols=(("cooperative" if self.cooperative else "eager", self._subscription()),),
            requires_known_member_id=True,
        )
        if self._ask(request, Phase.JOINING):
            self.claims = owned & self.granted

    def _subscription(self) -> bytes:
        owned = [TopicPartition(topic=name, partitions=each) for name, each in by_topic(self.owned).items()]
        message = ConsumerProtocolSubscription(
            topics=sorted(self.topics), owned_partitions=owned, generation_id=self.generation
        )
        return encode_subscription(message, 3 if self.cooperative else 1)

    def _ask(self, request: Join | Sync, phase: Phase) -> bool:
        """Whether the coordinator may have taken in what the request says."""
        self.phase = phase
        try:
            self.waiter = self.world.ask(request)
        except Disconnected:
            self.phase = Phase.UNJOINED
        except GroupError as error:
            self._refused(error)
            return False
        return True

    def _look_for_answer(self) -> None:
        waiter = self.waiter
        assert waiter is not None
        if waiter.is_lost:
            self.lose_answer()
        elif waiter.is_answered:
            self.waiter = None
            self._take(waiter)
        elif self.phase is Phase.SYNCING:
            self._heartbeat()

    def _take(self, waiter: Asked) -> None:
        answer = waiter.answer
        if isinstance(answer, Joined):
            self.member_id, self.generation, self.joined = answer.member_id, answer.generation, answer
            self.phase = Phase.JOINED
        elif isinstance(answer, Synced):
            self._assigned(decode_places(answer.assignment), waiter.granted)
        else:
            self._refused(answer)

    def _assigned(self, places: set[Place], granted: set[Partition]) -> None:
        self.granted |= granted
        self.claims |= self.world.partitions(places) & self.granted
        revoked = self.owned - places
        self.owned = places
        self.phase = Phase.UNJOINED if revoked else Phase.STABLE
        self.world.check()

    def _sync(self) -> None:
        joined = self.joined
        assert joined is not None
        assignments = {}
        if joined.leader == self.member_id:
            # A static leader that is back has to know what the assignment that stands was made for.
            if not joined.skip_assignment:
                assignments = self._assign(joined)
                self.world.assigned_for = self.world.topics.version
            self.seen_topics = self.world.assigned_for
        request = sync_request(
            self.member_id,
            self.generation,
            assignments,
            instance_id=self.instance_id,
            protocol_name=joined.protocol_name,
        )
        self._ask(request, Phase.SYNCING)

    def _assign(self, joined: Joined) -> dict[str, bytes]:
        members = {each.member_id: decode_subscription(each.metadata) for each in joined.members}
        partitions = {name: topic.partitions for name, topic in self.world.topics.by_name.items()}
        return assign(members, partitions, cooperative=joined.protocol_name == "cooperative")

    def _heartbeat(self) -> None:
        self._try(lambda: self.world.heartbeat(self.member_id, self.generation, self.instance_id))

    def _try(self, request: Callable[[], object]) -> None:
        try:
            self.world.serve(request)
        except Disconnected:
            pass  # the next step goes on
        except GroupError as error:
            self.waiter = None
            self._refused(error)

    def _refused(self, error: GroupError) -> None:
        self.phase = Phase.UNJOINED
        match error:
            case MemberIdRequired():
                assert error.member_id is not None
                self.member_id = error.member_id
            case UnknownMember() | GroupIdNotFound():
                self.member_id = ""
                self._lose_all()
            case IllegalGeneration():
                self._lose_all()
            case FencedInstance() | InconsistentProtocol() | GroupIsFull():
                self.die()
            case RebalanceInProgress():
                pass  # it joins again
            case _:
                raise error

    def _lose_all(self) -> None:
        self.generation = -1
        self.owned, self.claims = set(), set()

    # -- other things that clients do ----------------------------------------------------------

    def lose_answer(self) -> None:
        """The connection breaks: whatever is answered does not arrive."""
        self.waiter = None
        self.phase = Phase.UNJOINED if self.phase is not Phase.STABLE else self.phase

    def subscribe(self, topics: frozenset[str]) -> None:
        self.topics = topics

    def commit(self, offset: int) -> None:
        if self.phase is Phase.STABLE and self.owned:
            topic, number = min(self.owned)
            request = commit_request(
                [(topic, number, offset)], self.member_id, self.generation, instance_id=self.instance_id
            )
            self._try(lambda: self.world.commit(request))

    def leave(self) -> None:
        """Static members only stop: their place is kept for them."""
        if self.instance_id is None and self.member_id:
            self._try(lambda: self.world.leave((self.member_id, None)))
        self.die()

    def die(self) -> None:
        self.is_alive = False
        self.waiter = None
        self._lose_all()

    def was_fenced(self) -> None:
        """It is no member any more. It need not have heard, but nobody has to wait for it."""
        self.claims, self.granted = set(), set()

    def group_was_upgraded(self, assigned: set[Partition]) -> None:
        self.granted = set(assigned)
        self.claims = self.world.partitions(self.owned) & assigned

    def topic_is_gone(self, name: str) -> None:
        self.owned = {place for place in self.owned if place[0] != name}

    @property
    def has_to_rejoin(self) -> bool:
        """For reasons of its own: it wants other topics, or it has to assign them anew because it leads."""
        return self.joined_for != self.topics or self.seen_topics not in {None, self.world.topics.version}

    @property
    def is_settled(self) -> bool:
        return self.phase is Phase.STABLE and not self.has_to_rejoin

    @property
    def reads(self) -> set[Partition]:
        return self.world.partitions(self.owned)
