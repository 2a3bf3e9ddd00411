"""Handlers of large requests look at a few elements in each step, whatever array of the request is large."""

import asyncio
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import pytest

from amplification.shapes import Filling, Scalars, Shape, World, all_shapes, build, version_classes
from headrace.broker.handlers.join_group import MAX_PROTOCOLS, join_group
from headrace.broker.requests.dispatch import HANDLERS, Context, call
from headrace.broker.requests.envelopes import sealed
from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.slices import STEP, Steps, at_once, grouped, keyed
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from headrace.security.listeners import Listener, SecurityProtocol
from headrace.storage.config import LogConfig
from headrace.storage.directory import LogDirectory
from headrace.storage.identity import Identity

MANY: Final = 2_000
WORLD: Final = World((("orders", bytes(16)),), 1, "group")
HANDLED: Final = {
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.CONSUMER_GROUP_DESCRIBE,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.DESCRIBE_GROUPS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_OFFSETS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_DELETE,
    ApiKey.OFFSET_FETCH,
    ApiKey.OFFSET_FOR_LEADER_EPOCH,
}
LEFT_OUT: Final = {
    ("subscribed_topic_names",),  # strings and numbers that become a set, which takes 50 ns for each
    ("topic_partitions", "partitions"),
    ("producer_id_filters",),
    ("resources", "configuration_keys"),  # nobody looks at them: the resource or the group does not exist
    ("groups", "topics"),
    ("groups", "topics", "partition_indexes"),
}
SHAPES: Final = [
    shape
    for shape in all_shapes()
    if shape.key in HANDLED
    and shape.version == version_classes(shape.key)[-1]
    and (shape.filling, shape.scalars, shape.nested) == (Filling.UNKNOWN, Scalars.DEFAULT, False)
    and shape.path not in LEFT_OUT
]


class CountedItems(list[Any]):
    """A list that counts how many of its items were looked at."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for item in super().__iter__():
            CountedItems.seen += 1
            yield item


def count_items(message: Any, path: tuple[str, ...]) -> None:
    """Replace the large array of a message by one that counts."""
    for name in path[:-1]:
        (message,) = getattr(message, name)
    setattr(message, path[-1], CountedItems(getattr(message, path[-1])))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_step_of_a_handler_looks_at_many_elements(shape: Shape, tmp_path: Path) -> None:
    async def run() -> list[int]:
        broker = Broker(BrokerConfig.of({"broker.id": "1", "log.dirs": str(tmp_path)}))
        broker._loop = asyncio.get_running_loop()
        broker.logs = LogDirectory.open(
            tmp_path, Identity(1, "c"), config_of=lambda _topic: LogConfig(), now_ms=lambda: 0
        )
        listener = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)
        request = build(shape, WORLD, 10**9, MANY)
        count_items(request, shape.path)
        steps = call(HANDLERS[shape.key], request, Context(broker, listener, None, shape.version)).steps
        assert steps is not None
        seen = [CountedItems.seen, *(CountedItems.seen for _ in steps), CountedItems.seen]
        broker.logs.close()
        return [after - before for before, after in pairwise(seen)]

    looked_at = asyncio.run(run())

    assert sum(looked_at) >= MANY
    assert max(looked_at) <= 2 * STEP


def test_items_are_grouped_and_keyed_in_steps() -> None:
    def size(steps: Steps[Any]) -> int:
        return sum(1 for _ in steps)

    assert at_once(grouped(len, ["a", "bb", "c"])) == {1: ["a", "c"], 2: ["bb"]}
    assert at_once(keyed(len, ["a", "bb", "c"])) == {1: "c", 2: "bb"}
    assert size(grouped(len, ["a"] * MANY)) == size(keyed(len, ["a"] * MANY)) == MANY / STEP


def test_a_member_of_very_many_protocols_is_refused_before_they_are_looked_at() -> None:
    protocols = CountedItems([JoinGroupRequestProtocol(name="", metadata=b"")] * (MAX_PROTOCOLS + 1))
    request = JoinGroupRequest(
        group_id="group", session_timeout_ms=1, member_id="m", protocol_type="consumer", protocols=protocols
    )
    listener = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)
    before = CountedItems.seen

    response = join_group(
        request, Context(Broker(BrokerConfig.of({"broker.id": "1"})), listener, None, version=9)
    ).reply

    assert isinstance(response, JoinGroupResponse)
    assert response.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert CountedItems.seen == before


def test_a_large_request_is_put_into_an_envelope_in_steps() -> None:
    listener = Listener("PLAINTEXT", SecurityProtocol.PLAINTEXT, is_inter_broker=True)
    context = Context(Broker(BrokerConfig.of({"broker.id": "1"})), listener, None, version=7)
    request = CreateTopicsRequest(
        topics=[
            CreatableTopic(name="orders", num_partitions=1, replication_factor=1, assignments=(), configs=())
        ]
        * MANY
    )

    assert sum(1 for _ in sealed(request, context)) > MANY / 100
