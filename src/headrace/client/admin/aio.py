"""Administration from asyncio: `headrace.AsyncAdmin`.

async with AsyncAdmin("127.0.0.1:9092") as admin:
    await admin.create_topic("orders", partitions=6)
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ParamSpec, Self, TypeVar

from headrace.client.admin.admin import Admin, Span
from headrace.client.admin.arguments import Configs
from headrace.client.admin.topics import Config, Topic, TopicSummary
from headrace.client.groups.group import Group, GroupSummary
from headrace.client.hints import ADMIN, Hints
from headrace.client.settings import Bootstrap
from headrace.protocol.ids import TopicPartition

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")


class AsyncAdmin(Hints):
    """As `Admin`: every method of the same name does the same, in a thread."""

    _hints = ADMIN
    _opened = ("_admin",)

    def __init__(
        self, bootstrap: Bootstrap = None, options: Mapping[str, str] | None = None, **named: object
    ) -> None:
        self._make: Callable[[], Admin] = partial(Admin, bootstrap, options, **named)
        self._admin: Admin

    async def __aenter__(self) -> Self:
        self._admin = await _call(self._make)
        return self

    async def __aexit__(self, _kind: object, _error: BaseException | None, _trace: object) -> None:
        await self.close()

    async def close(self) -> None:
        await _call(self._admin.close)

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        replicas: int | None = None,
        configs: Configs | None = None,
    ) -> Topic:
        return await _call(
            self._admin.create_topic, name, partitions=partitions, replicas=replicas, configs=configs
        )

    async def list_topics(self) -> list[TopicSummary]:
        return await _call(self._admin.list_topics)

    async def describe_topic(self, name: str) -> Topic:
        return await _call(self._admin.describe_topic, name)

    async def add_partitions(self, name: str, total: int) -> None:
        await _call(self._admin.add_partitions, name, total)

    async def delete_topic(self, name: str) -> None:
        await _call(self._admin.delete_topic, name)

    async def topic_configs(self, name: str) -> list[Config]:
        return await _call(self._admin.topic_configs, name)

    async def broker_configs(self, broker_id: int) -> list[Config]:
        return await _call(self._admin.broker_configs, broker_id)

    async def alter_topic_configs(self, name: str, *, sets: Configs, unsets: Sequence[str] = ()) -> None:
        await _call(self._admin.alter_topic_configs, name, sets=sets, unsets=unsets)

    async def alter_broker_configs(
        self, broker_id: int, *, sets: Configs, unsets: Sequence[str] = ()
    ) -> None:
        await _call(self._admin.alter_broker_configs, broker_id, sets=sets, unsets=unsets)

    async def offsets(self, topic: str) -> dict[int, Span]:
        return await _call(self._admin.offsets, topic)

    async def offsets_at(self, topic: str, time_ms: int) -> dict[int, int | None]:
        return await _call(self._admin.offsets_at, topic, time_ms)

    async def delete_records(self, topic: str, before: Mapping[int, int]) -> dict[int, int]:
        return await _call(self._admin.delete_records, topic, before)

    async def list_groups(self) -> list[GroupSummary]:
        return await _call(self._admin.list_groups)

    async def describe_group(self, name: str) -> Group:
        return await _call(self._admin.describe_group, name)

    async def lag(self, group: str) -> dict[TopicPartition, int]:
        return await _call(self._admin.lag, group)

    async def set_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition | tuple[str, int], int]
    ) -> None:
        await _call(self._admin.set_group_offsets, group, offsets)

    async def delete_group(self, name: str) -> None:
        await _call(self._admin.delete_group, name)


async def _call(
    function: Callable[Arguments, Answer], *arguments: Arguments.args, **named: Arguments.kwargs
) -> Answer:
    return await asyncio.to_thread(function, *arguments, **named)
