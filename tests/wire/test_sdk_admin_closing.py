"""An admin is closed as all other clients are, and says so afterwards."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from typing import Any

import pytest

from headrace import Admin, AsyncAdmin, Closed
from wire.process import BrokerProcess
from wire.sdk import fresh, numbers, topic_of

USES: list[Callable[[Any], object]] = [
    lambda admin: admin.list_topics(),
    lambda admin: admin.create_topic("late"),
    lambda admin: admin.offsets("late"),
    lambda admin: admin.broker_configs(1),
    lambda admin: admin.list_groups(),
    lambda admin: admin.lag("late"),
    lambda admin: admin.set_group_offsets("late", {}),
]


def test_an_admin_can_be_closed_twice_and_does_nothing_after_that(broker: BrokerProcess) -> None:
    topic, group = topic_of(broker.bootstrap, numbers(2)), fresh("group")
    with closing(Admin(broker.bootstrap)) as admin:
        admin.set_group_offsets(group, {(topic, 0): 1})  # so that there is more than one connection
        assert admin.lag(group) == {(topic, 0): 1}
        admin.close()
    for use in USES:
        with pytest.raises(Closed, match="the admin is closed: make another one"):
            use(admin)


def test_leaving_the_block_closes_an_admin(broker: BrokerProcess) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.list_topics()
    with pytest.raises(Closed):
        admin.list_topics()


def test_a_twin_is_closed_alike(broker: BrokerProcess) -> None:
    async def story() -> None:
        async with AsyncAdmin(broker.bootstrap) as admin:
            await admin.list_topics()
            await admin.close()
        with pytest.raises(Closed):
            await admin.list_groups()

    asyncio.run(story())


def test_whoever_asks_while_another_thread_closes_is_answered_or_told(broker: BrokerProcess) -> None:
    admin, asked = Admin(broker.bootstrap), Event()

    def ask() -> None:
        while admin.list_topics() is not None:
            asked.set()

    with ThreadPoolExecutor(3) as threads:
        asking = [threads.submit(ask) for _ in range(3)]
        try:
            assert asked.wait(30)
        finally:
            admin.close()
        assert [type(each.exception(60)) for each in asking] == [Closed] * 3
