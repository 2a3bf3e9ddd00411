"""Any history of a group, with clients that behave as clients do, on a network and a broker that do not.

`group_clients/world.py` says what must hold at every step. In the end, whatever has happened, members only
heartbeat and join as they are told, time passes, and the group settles: everybody is stable, and all
partitions of topics that somebody subscribes to are read once.

HEADRACE_EXAMPLES=200 asks for more stories than the default few.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from headrace.coordinators.group.classic import ClassicGroup, ClassicState
from headrace.coordinators.group.consumer import ConsumerGroup
from headrace.coordinators.group.errors import GroupError, GroupNotEmpty
from property.group_clients.classic import ClassicClient
from property.group_clients.consumer import ConsumerClient
from property.group_clients.world import Dies, World
from support.groups import beat_request, commit_request, join_request, sync_request

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "3"))
TOPICS = ("orders", "people", "places")
INSTANCES = {"i1": frozenset({"orders"}), "i2": frozenset({"orders", "people"})}
MOST_CLIENTS = 5
HEARTBEAT_MS = 3_000
PATIENCE = 400  # heartbeats, until the last of the dead must have been noticed

subscriptions = st.frozensets(st.sampled_from(TOPICS), min_size=1, max_size=2)
indexes = st.integers(0, MOST_CLIENTS - 1)
times = st.sampled_from([1, 2_000, HEARTBEAT_MS, 7_000, 20_000, 50_000, 70_000, 400_000])
Client = ClassicClient | ConsumerClient


class GroupHistory(RuleBasedStateMachine):
    kinds: tuple[str, ...] = ("classic", "consumer")

    @initialize(
        delay_ms=st.sampled_from([0, 3_000]),
        cooperative=st.booleans(),
        assignor=st.sampled_from(["uniform", "range"]),
    )
    def start(self, delay_ms: int, cooperative: bool, assignor: str) -> None:
        self.world = World(initial_rebalance_delay_ms=delay_ms, consumer_assignors=(assignor,))
        self.world.set_topics(orders=3)
        self.cooperative = cooperative
        self.clients: list[Client] = []
        self.made = 0
        self.commits = 0

    # -- clients -------------------------------------------------------------------------------

    def living(self) -> list[Client]:
        return [client for client in self.clients if client.is_alive]

    def one(self, index: int) -> Client:
        living = self.living()
        return living[index % len(living)]

    @precondition(lambda self: len(self.living()) < MOST_CLIENTS)
    @rule(
        kind=st.integers(0, 9),
        topics=subscriptions,
        instance=st.none() | st.sampled_from(["i1", "i2"]),
        regex=st.booleans(),
    )
    def arrive(self, kind: int, topics: frozenset[str], instance: str | None, regex: bool) -> None:
        if instance in {client.instance_id for client in self.living()}:
            instance = None
        topics = INSTANCES.get(instance or "", topics)
        self.made += 1
        client: Client
        if self.kinds[kind % len(self.kinds)] == "classic":
            client = ClassicClient(self.world, topics, instance, cooperative=self.cooperative)
        else:
            expression = "[op].*" if regex else None
            client = ConsumerClient(
                self.world, f"consumer{self.made}", topics, instance, expression=expression
            )
        self.clients.append(client)
        self.world.clients.append(client)
        client.step()

    @precondition(lambda self: self.living())
    @rule(index=indexes, count=st.integers(1, 4))
    def step(self, index: int, count: int) -> None:
        client = self.one(index)
        for _ in range(count):
            if client.is_alive:
                client.step()

    @precondition(lambda self: self.living())
    @rule(rounds=st.integers(1, 6))
    def all_step(self, rounds: int) -> None:
        for _ in range(rounds):
            for client in self.living():
                client.step()

    @precondition(lambda self: self.living())
    @rule(index=indexes)
    def lose_answer(self, index: int) -> None:
        self.one(index).lose_answer()

    @precondition(lambda self: self.living())
    @rule(index=indexes)
    def leave(self, index: int) -> None:
        self.one(index).leave()

    @precondition(lambda self: self.living())
    @rule(index=indexes)
    def die(self, index: int) -> None:
        self.one(index).die()

    @precondition(lambda self: self.living())
    @rule(index=indexes, topics=subscriptions)
    def subscribe(self, index: int, topics: frozenset[str]) -> None:
        """Not a static one: it gets its place back without a rebalance, so it must want what it wanted."""
        client = self.one(index)
        if client.instance_id is None:
            client.subscribe(topics)

    @precondition(lambda self: self.living())
    @rule(index=indexes)
    def commit(self, index: int) -> None:
        self.commits += 1
        self.one(index).commit(self.commits)

    @rule(what=st.integers(0, 5), late=st.sampled_from([-2, -1, 1, 2]), who=st.none() | indexes)
    def stranger(self, what: int, late: int, who: int | None) -> None:
        """Somebody asks for what is not to be had, or a member for what is not to be had any more."""
        member_id = "nobody"
        if who is not None and self.clients:
            member_id = self.clients[who % len(self.clients)].member_id or member_id
        number = self.world.number + late
        if number < 1:
            return  # that would be somebody who joins, or leaves
        requests: list[Callable[[], Any]] = [
            lambda: self.world.beat(beat_request(member_id, number)),
            lambda: self.world.heartbeat(member_id, number),
            lambda: self.world.commit(commit_request([("orders", 0, 0)], member_id, number)),
            lambda: self.world.ask(sync_request(member_id, number)),
            lambda: self.world.ask(join_request("nobody")),
            lambda: self.world.ask(join_request(protocol_type="connect", requires_known_member_id=True)),
        ]
        with suppress(GroupError):
            self.world.serve(requests[what])

    # -- the rest of the world -----------------------------------------------------------------

    @rule(ms=times, at_once=st.booleans())
    def pass_time(self, ms: int, at_once: bool) -> None:
        if at_once:
            self.world.now_ms += ms
            self.world.expire()
        else:
            self.world.pass_time(ms)

    @rule(topic=st.sampled_from(TOPICS), more=st.integers(1, 2))
    def topic_grows(self, topic: str, more: int) -> None:
        partitions = {name: each.partitions for name, each in self.world.topics.by_name.items()}
        partitions[topic] = partitions.get(topic, 0) + more
        if partitions[topic] <= 5:
            self.world.set_topics(**partitions)

    @rule(topic=st.sampled_from(TOPICS))
    def topic_goes(self, topic: str) -> None:
        partitions = {
            name: each.partitions for name, each in self.world.topics.by_name.items() if name != topic
        }
        self.world.set_topics(**partitions)
        self.world.forget_topic(topic)
        for client in self.clients:
            client.topic_is_gone(topic)

    @rule(after_compaction=st.booleans())
    def crash(self, after_compaction: bool) -> None:
        self.world.check_log()
        self.world.crash(after_compaction=after_compaction)

    @precondition(lambda self: self.living())
    @rule(index=indexes, when=st.sampled_from(Dies))
    def crash_while_serving(self, index: int, when: Dies) -> None:
        self.world.dies = when
        self.one(index).step()
        self.world.dies = None

    @rule()
    def expire_offsets(self) -> None:
        self.world.expire_offsets()

    @precondition(lambda self: self.world.group is not None)
    @rule()
    def delete_group(self) -> None:
        try:
            self.world.delete_group()
        except GroupNotEmpty:
            assert self.world.group is not None

    # -- in the end ----------------------------------------------------------------------------

    @rule()
    def settle(self) -> None:
        """Members only heartbeat and join as they are told, and time passes."""
        for_long = 0
        for _ in range(PATIENCE):
            for client in self.living():
                client.step()
            self.world.pass_time(HEARTBEAT_MS)
            for_long = for_long + 1 if self.is_settled() else 0
            if for_long == 5:
                break
        else:
            raise AssertionError(f"{self.world.group} does not settle: {self.living()}")
        self.world.check_log()

    def is_settled(self) -> bool:
        group, living = self.world.group, self.living()
        if not living:
            return group is None or not group.members
        if isinstance(group, ClassicGroup):
            stable = group.state is ClassicState.STABLE
        else:
            stable = isinstance(group, ConsumerGroup) and group.state_name == "Stable"
        if not stable or self.world.waiting or len(group.members) != len(living):  # type: ignore[union-attr]
            return False
        if not all(client.is_settled for client in living):
            return False
        subscribed = {topic for client in living for topic in self.topics_of(client)}
        wanted = {
            (topic.topic_id, number)
            for name, topic in self.world.topics.by_name.items()
            if name in subscribed
            for number in range(topic.partitions)
        }
        read = [partition for client in living for partition in client.reads]
        if self.is_without_leader():
            return len(read) == len(set(read))
        return sorted(read) == sorted(wanted)

    def is_without_leader(self) -> bool:
        """When a classic member replaces the last consumer of a group, there is no rebalance, as in Kafka.

        So nobody knows that it leads, and nobody notices if topics grow, until there is one.
        """
        return isinstance(self.world.group, ClassicGroup) and not any(
            isinstance(client, ClassicClient) and client.seen_topics is not None for client in self.living()
        )

    def topics_of(self, client: Client) -> frozenset[str]:
        if isinstance(client, ConsumerClient) and client.expression is not None:
            return client.topics | self.world.topics.matching(client.expression)
        return client.topics

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.settle()


class ClassicHistory(GroupHistory):
    kinds = ("classic",)


class ConsumerHistory(GroupHistory):
    kinds = ("consumer",)


patient = settings(
    max_examples=EXAMPLES * 30,
    stateful_step_count=60,
    deadline=None,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
TestClassicGroups = ClassicHistory.TestCase
TestClassicGroups.settings = patient
TestConsumerGroups = ConsumerHistory.TestCase
TestConsumerGroups.settings = patient
TestMixedGroups = GroupHistory.TestCase
TestMixedGroups.settings = patient
