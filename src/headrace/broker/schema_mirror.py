"""The schemas in ZooKeeper: what the leader of `_schemas` has read there, for all to see.

    /schemas/subjects/orders-value   {"version":1,"subject":"orders-value","versions":{"1":7},"deleted":[]}
    /schemas/ids/7                   {"version":1,"schemaType":"AVRO","schema":"…","references":[]}

The topic is what counts. This follows it, a moment later, and is put right whenever it has a new leader.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.partition import Partition
from headrace.broker.schema_view import SCHEMAS_TOPIC, SchemaView
from headrace.coordination.errors import CoordinationError
from headrace.coordination.schema_znodes import SchemaSubject, SchemaText, node_name
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.registry.state import State

_SCHEMAS: Final = TopicPartition(SCHEMAS_TOPIC, 0)
_RETRY_S: Final = 1.0
_AT_ONCE: Final = 50  # subjects, before others are served
_UNCOMMITTED_S: Final = 0.05

logger = logging.getLogger(__name__)


class SchemaMirror:
    """At work only while this broker leads the topic, and something has been written to it."""

    def __init__(
        self,
        view: SchemaView,
        partitions: Mapping[TopicPartition, Partition],
        session: Callable[[], ZooKeeperSession],
    ) -> None:
        self._view = view
        self._partitions = partitions
        self._session = session
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._known: dict[str, bytes] | None = None  # what is in ZooKeeper, by path; None: to be read

    def look(self) -> None:
        """There may be something new."""
        self._again = True
        if self._leads() and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._work())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _leads(self) -> bool:
        partition = self._partitions.get(_SCHEMAS)
        leads = partition is not None and partition.leadership is not None
        if not leads:
            self._known = None  # another writes there now
        return leads

    async def _work(self) -> None:
        while self._again and self._leads():
            self._again = False
            try:
                await self._view.catch_up()
                await self._write(await _wanted(self._view.state))
            except (KafkaError, CoordinationError) as error:
                logger.warning("ZooKeeper is not told of schemas: %s; trying again", error)
                self._known = None
                self._again = True
                await asyncio.sleep(_RETRY_S)
                continue
            partition = self._partitions.get(_SCHEMAS)
            if partition is not None and self._view.position < partition.log.log_end_offset:
                self._again = True  # it is in the log, and not committed yet
                await asyncio.sleep(_UNCOMMITTED_S)

    async def _write(self, wanted: dict[str, bytes]) -> None:
        session = self._session()
        if self._known is None:
            self._known = await self._read()
        for path, data in wanted.items():
            if path not in self._known:
                await session.create(path, data)
            elif self._known[path] != data:
                await session.set(path, data)
            self._known[path] = data
        for path in [path for path in self._known if path not in wanted]:
            await session.delete(path)
            del self._known[path]

    async def _read(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for parent in (SchemaSubject.parent, SchemaText.parent):
            await self._session().ensure(parent)
            for name in await self._session().children(parent):
                node = await self._session().get(f"{parent}/{name}")
                if node is not None:
                    found[f"{parent}/{name}"] = node.data
        return found


async def _wanted(state: "State") -> dict[str, bytes]:
    """What should be there: subjects with the ids of their versions, and what each id stands for.

    Others are served in between; if something changes meanwhile, there will be another look.
    """
    from headrace.registry import names  # noqa: PLC0415  few brokers need it
    from headrace.registry.state import Show  # noqa: PLC0415

    found: dict[str, bytes] = {}
    for number, subject in enumerate(state.subjects(show=Show.ALL)):
        if not number % _AT_ONCE:
            await asyncio.sleep(0)
        values = state.versions(subject, Show.ALL)
        node = SchemaSubject(
            subject=subject,
            versions={each.version: each.id for each in values},
            deleted=[each.version for each in values if each.deleted],
        )
        found[node.path] = node.encode()
        context = names.context_of(subject)
        at_home = context == names.DEFAULT_CONTEXT
        for each in values:
            text = SchemaText(
                name=str(each.id) if at_home else node_name(f"{context}:{each.id}"),
                kind=each.schema.type.value,
                text=each.schema.text,
                references=[
                    {"name": one.name, "subject": one.subject, "version": one.version}
                    for one in each.schema.references
                ],
            )
            found[text.path] = text.encode()
    return found
