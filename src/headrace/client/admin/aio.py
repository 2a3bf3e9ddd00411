"""Administration from asyncio: `headrace.AsyncAdmin`.

async with AsyncAdmin("127.0.0.1:9092") as admin:
    await admin.create_topic("orders", partitions=6)
"""

from functools import partial
from typing import Self

from headrace.client.admin.admin import Admin
from headrace.client.aio import AsyncFace, in_thread, takes_arguments_of


class AsyncAdmin(AsyncFace[Admin]):
    """As `Admin`: every method of the same name does the same, in a thread."""

    @takes_arguments_of(Admin)
    def __init__(self, make: "partial[Admin]") -> None:
        self._make = make

    async def __aenter__(self) -> Self:
        self._opened = await self._call(self._make)
        return self

    close = in_thread(Admin.close)
    create_topic = in_thread(Admin.create_topic)
    list_topics = in_thread(Admin.list_topics)
    describe_topic = in_thread(Admin.describe_topic)
    add_partitions = in_thread(Admin.add_partitions)
    delete_topic = in_thread(Admin.delete_topic)
    topic_configs = in_thread(Admin.topic_configs)
    broker_configs = in_thread(Admin.broker_configs)
    alter_topic_configs = in_thread(Admin.alter_topic_configs)
    alter_broker_configs = in_thread(Admin.alter_broker_configs)
    create_user = in_thread(Admin.create_user)
    set_user_password = in_thread(Admin.set_user_password)
    list_users = in_thread(Admin.list_users)
    describe_user = in_thread(Admin.describe_user)
    remove_user = in_thread(Admin.remove_user)
    list_acls = in_thread(Admin.list_acls)
    create_acls = in_thread(Admin.create_acls)
    delete_acls = in_thread(Admin.delete_acls)
    offsets = in_thread(Admin.offsets)
    offsets_at = in_thread(Admin.offsets_at)
    delete_records = in_thread(Admin.delete_records)
    list_groups = in_thread(Admin.list_groups)
    describe_group = in_thread(Admin.describe_group)
    lag = in_thread(Admin.lag)
    set_group_offsets = in_thread(Admin.set_group_offsets)
    delete_group = in_thread(Admin.delete_group)
    list_quotas = in_thread(Admin.list_quotas)
    alter_quotas = in_thread(Admin.alter_quotas)
    list_transactions = in_thread(Admin.list_transactions)
    describe_transactions = in_thread(Admin.describe_transactions)
    describe_producers = in_thread(Admin.describe_producers)
