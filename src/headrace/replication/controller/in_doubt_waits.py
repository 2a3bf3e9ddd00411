"""Waits for the replicas of partitions that have no leader because their live replicas are in doubt."""

import asyncio
import logging
from collections.abc import Callable, Collection

from headrace.protocol.ids import TopicPartition
from headrace.replication.controller.model import ClusterModel, Survey

_FIRST_RETRY_S, _LAST_RETRY_S = 0.2, 3.0

logger = logging.getLogger(__name__)


class InDoubtWaits:
    """Has partitions settled again: when replicas may answer, and when others have had time to return."""

    def __init__(
        self,
        model: ClusterModel,
        *,
        wait_s: Callable[[], float],
        settle_soon: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        """`wait_s` returns how long to wait for other replicas if the live ones are in doubt."""
        self._model = model
        self._wait_s = wait_s
        self._settle_soon = settle_soon
        self._waiting: set[TopicPartition] = set()  # partitions for which other replicas are waited for
        self._silent: set[TopicPartition] = set()  # those with live replicas that are to be asked again
        self._silent_brokers: set[tuple[int, int]] = set()  # with their broker epochs
        self._retry_s = _FIRST_RETRY_S
        self._asking: asyncio.TimerHandle | None = None

    def look(self, keys: Collection[TopicPartition], survey: Survey) -> None:
        """Begin to wait for the replicas of those of `keys` that are in doubt after they were settled."""
        in_doubt = self._model.in_doubt(keys)
        silent = {
            key: self._model.live.intersection(partition.replicas) - survey.get(key, {}).keys()
            for key, partition in in_doubt.items()
        }
        self._ask_later({key: brokers for key, brokers in silent.items() if brokers})
        new = in_doubt.keys() - self._waiting - self._model.waited_for
        waiting = {key for key in new if self._model.is_enough_after_waiting(key, survey)}
        if waiting:
            self._waiting |= waiting
            wait_s = self._wait_s()
            asyncio.get_running_loop().call_later(wait_s, self._waited, waiting)
            key = min(waiting)
            logger.warning(
                "%s%s: the live replicas of %s may have lost records; waiting up to %g s for the others",
                key,
                f" and {len(waiting) - 1} more partitions" if len(waiting) > 1 else "",
                list(in_doubt[key].replicas),
                wait_s,
            )

    def _ask_later(self, silent: dict[TopicPartition, set[int]]) -> None:
        """Ask live replicas again that have not said where their logs end, with exponential backoff.

        A broker that has just started is asked soon.
        """
        self._silent.update(silent)
        members = self._model.members
        brokers = {(each, members[each].epoch) for some in silent.values() for each in some}
        is_new = not brokers <= self._silent_brokers
        if is_new:
            self._retry_s = _FIRST_RETRY_S
            live = {(each, member.epoch) for each, member in members.items()}
            self._silent_brokers = (self._silent_brokers & live) | brokers
        if silent and (self._asking is None or is_new):
            if self._asking is not None:
                self._asking.cancel()
            self._asking = asyncio.get_running_loop().call_later(self._retry_s, self._ask_again)
            self._retry_s = min(2 * self._retry_s, _LAST_RETRY_S)

    def _ask_again(self) -> None:
        keys, self._silent, self._asking = self._silent, set(), None
        self._settle_soon(keys)

    def _waited(self, keys: Collection[TopicPartition]) -> None:
        self._waiting.difference_update(keys)
        if left := self._model.in_doubt(keys).keys():
            self._model.waited_for |= left
            self._settle_soon(left)
