"""The verification of a transaction before its first batch is appended."""

import logging
from collections.abc import Callable

from headrace.protocol.errors import KafkaError

logger = logging.getLogger(__name__)


class Verification:
    """The question to a transaction coordinator whether a producer's transaction includes a partition.

    Batches that arrive before the answer are appended in their order when it is there: `finish` calls what
    was passed to `when_done`, with the error or None. A future would let a later batch overtake them.
    """

    __slots__ = ("_error", "_is_done", "_waiting", "epoch", "holds", "leader_epoch")

    def __init__(self, epoch: int, leader_epoch: int) -> None:
        self.epoch = epoch  # of the producer
        self.leader_epoch = leader_epoch  # of the partition when the question was asked
        self.holds = 0  # batches that are neither appended nor refused yet
        self._waiting: list[Callable[[KafkaError | None], None]] = []
        self._is_done = False
        self._error: KafkaError | None = None

    def when_done(self, action: Callable[[KafkaError | None], None]) -> None:
        if self._is_done:
            action(self._error)
        else:
            self._waiting.append(action)

    def finish(self, error: KafkaError | None) -> None:
        """Call the actions that wait."""
        self._is_done, self._error = True, error
        waiting, self._waiting = self._waiting, []
        for action in waiting:
            try:
                action(error)
            except Exception:  # the batches after it have nothing to do with it
                logger.exception("a batch could not be appended after its verification")
