"""A gateway that is about to stop: what would go on for long comes to an end."""

import asyncio
import threading

from headrace.client.records.one_by_one import END
from headrace.gateway.rest.instance import ConsumerOptions
from headrace.gateway.rest.instances import Instances
from headrace.gateway.rest.tails import Tails
from http_support.asking import WAIT_S, Asking, wait_until
from support.process import UpProcess


def test_tails_end_when_they_are_told_to(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()

    async def follow() -> None:
        tails = Tails(lambda: broker.bootstrap)
        tail = await tails.open(topic, END)
        threading.Timer(0.1, tails.end).start()
        while await tail.take(WAIT_S) is not None:
            assert not tail.failure
        wait_until(lambda: len(tails) == 0, "its consumer is still there")

    asyncio.run(asyncio.wait_for(follow(), WAIT_S))


def test_a_read_that_waits_answers_when_it_is_interrupted(gateway: Asking, broker: UpProcess) -> None:
    topic = gateway.topic()
    instances = Instances(lambda: broker.bootstrap)
    instances.create("interrupted", "one", ConsumerOptions())
    one = instances.get("interrupted", "one")
    one.subscribe([topic], None)
    threading.Timer(0.1, instances.interrupt).start()
    assert one.read(600_000, None, lambda record: record) == []
    instances.close()
