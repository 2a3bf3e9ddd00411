"""Deleted logs: their directories are renamed before the next update is applied, and removed in a thread."""

import asyncio
import logging
from collections.abc import Callable

from headrace.protocol.ids import TopicPartition
from headrace.storage.directory import LogDirectory

logger = logging.getLogger(__name__)


class Deletions:
    """The logs of this broker whose files are still to be deleted."""

    def __init__(self, logs: Callable[[], LogDirectory]) -> None:
        self._logs = logs
        self._retired: list[TopicPartition] = []  # closed logs whose directories are still to be renamed
        self._renaming: asyncio.Future[None] | None = None
        self._has_deleted = False  # logs whose files are still to be removed
        self._unlinking: asyncio.Task[None] | None = None

    def retire(self, id_: TopicPartition) -> None:
        """Close a log for good; `rename` or `rename_now` deletes it."""
        if self._logs().retire(id_):
            self._retired.append(id_)

    def rename_now(self) -> None:
        """Rename the directories of retired logs at once: new logs are about to have the same names."""
        retired, self._retired = self._retired, []
        self._logs().rename_retired(retired)

    async def rename(self) -> None:
        """Rename the directories of retired logs in a thread; a later call waits for an earlier one."""
        if self._retired:
            retired, self._retired = self._retired, []
            self._renaming = asyncio.ensure_future(asyncio.to_thread(self._logs().rename_retired, retired))
        renaming = self._renaming
        if renaming is not None:
            try:
                await asyncio.shield(renaming)
            finally:
                if renaming.done():
                    self._renaming = None
            self.unlink()

    def unlink(self) -> None:
        """Remove the files of deleted logs in a thread, which may take long."""
        self._has_deleted = True
        if self._unlinking is None or self._unlinking.done():
            self._unlinking = asyncio.get_running_loop().create_task(self._unlink())

    async def _unlink(self) -> None:
        while self._has_deleted:
            self._has_deleted = False
            try:
                await asyncio.to_thread(self._logs().unlink_deleted)
            except OSError as error:
                logger.error("deleted logs could not be removed: %s", error)  # noqa: TRY400  it has the reason
