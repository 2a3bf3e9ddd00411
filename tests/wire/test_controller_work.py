"""The controller's work is proportional to what changes, not to what exists: it is counted, not timed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headrace.broker.server import Broker
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.replication.controller import model
from headrace.replication.controller.runner import Controller
from headrace.replication.election import Partition, elect
from wire.test_metadata_is_fresh import running_brokers

PARTITIONS = 3


async def create(broker: Broker, names: list[str]) -> None:
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1, assignments=(), configs=())
        for name in names
    ]
    answer = await broker.handle_locally(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
    assert [each.error_code for each in answer.topics] == [0] * len(names)


async def settled(controller: Controller) -> None:
    while controller._unsettled or (  # noqa: ASYNC110 (there is no event)
        controller._settling and not controller._settling.done()
    ):
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("existing", [0, 40])
def test_a_new_topic_costs_the_same_next_to_many_others(
    existing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[object] = []

    def counted(partition: Partition, *args: Any, **options: Any) -> Partition:
        looked_at.append(partition)
        return elect(partition, *args, **options)

    async def story() -> None:
        async with running_brokers(tmp_path, 1) as (broker,):
            await create(broker, [f"old-{number}" for number in range(existing)])
            controller = broker.controller
            assert controller is not None
            await settled(controller)
            monkeypatch.setattr(model, "elect", counted)
            await create(broker, ["new-1", "new-2"])
            await settled(controller)

    asyncio.run(story())
    assert len(looked_at) <= 2 * PARTITIONS * 2  # each once, or twice while both are being made
