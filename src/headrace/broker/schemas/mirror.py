"""A copy of the schemas in ZooKeeper, written by the leader of `_schemas`.

    /schemas/subjects/orders-value   {"version":1,"subject":"orders-value","versions":{"1":7},"deleted":[]}
    /schemas/ids/7                   {"version":1,"schemaType":"AVRO","schema":"…","references":[]}

The topic is authoritative. The copy follows it asynchronously, and a new leader corrects it.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from headrace.broker.replicas.partition import Partition
from headrace.broker.schemas.view import SCHEMAS_TOPIC, SchemaView
from headrace.coordination.errors import CoordinationError
from headrace.coordination.schema_znodes import SchemaSubject, SchemaText, node_name
from headrace.coordination.session import ZooKeeperSession
from headrace.protocol.errors import KafkaError
from headrace.protocol.ids import TopicPartition

if TYPE_CHECKING:
    from headrace.registry.state import RegistryState

_SCHEMAS: Final = TopicPartition(SCHEMAS_TOPIC, 0)
_RETRY_S: Final = 1.0
_STEP: Final = 50  # subjects, before other requests are served
_UNCOMMITTED_S: Final = 0.05

logger = logging.getLogger(__name__)


class SchemaMirror:
    """Writes the copy while this broker leads the topic."""

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
        self._known: dict[str, bytes] | None = None  # znodes in ZooKeeper by path; None: not read yet

    def update(self) -> None:
        """Bring the copy up to date in a task, if this broker leads the topic."""
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
            self._known = None  # another broker writes the znodes now
        return leads

    async def _work(self) -> None:
        while self._again and self._leads():
            self._again = False
            try:
                await self._view.catch_up()
                await self._write(await _znodes(self._view.state))
            except (KafkaError, CoordinationError) as error:
                logger.warning("cannot copy the schemas to ZooKeeper: %s; retrying in %g s", error, _RETRY_S)
                self._known = None
                self._again = True
                await asyncio.sleep(_RETRY_S)
                continue
            partition = self._partitions.get(_SCHEMAS)
            if partition is not None and self._view.position < partition.log.log_end_offset:
                self._again = True  # the end of the log is not committed yet
                await asyncio.sleep(_UNCOMMITTED_S)

    async def _write(self, znodes: dict[str, bytes]) -> None:
        session = self._session()
        if self._known is None:
            known: dict[str, bytes] = {}
            for parent in (SchemaSubject.parent, SchemaText.parent):
                await session.ensure(parent)
                for name in await session.children(parent):
                    node = await session.get(f"{parent}/{name}")
                    if node is not None:
                        known[f"{parent}/{name}"] = node.data
            self._known = known
        for path, data in znodes.items():
            if path not in self._known:
                await session.create(path, data)
            elif self._known[path] != data:
                await session.set(path, data)
            self._known[path] = data
        for path in [path for path in self._known if path not in znodes]:
            await session.delete(path)
            del self._known[path]


async def _znodes(state: "RegistryState") -> dict[str, bytes]:
    """Return the znodes of all subjects and schemas.

    Other requests are served in between; a change meanwhile leads to another update.
    """
    from headrace.registry import names  # noqa: PLC0415  loaded on demand: few brokers use it
    from headrace.registry.state import Show  # noqa: PLC0415

    found: dict[str, bytes] = {}
    for number, subject in enumerate(state.subjects(show=Show.ALL)):
        if not number % _STEP:
            await asyncio.sleep(0)
        values = state.versions(subject, Show.ALL)
        node = SchemaSubject(
            subject=subject,
            versions={value.version: value.id for value in values},
            deleted=[value.version for value in values if value.deleted],
        )
        found[node.path] = node.encode()
        context = names.context_of(subject)
        is_default = context == names.DEFAULT_CONTEXT
        for value in values:
            text = SchemaText(
                name=str(value.id) if is_default else node_name(f"{context}:{value.id}"),
                kind=value.schema.type.value,
                text=value.schema.text,
                references=[
                    {"name": one.name, "subject": one.subject, "version": one.version}
                    for one in value.schema.references
                ],
            )
            found[text.path] = text.encode()
    return found
