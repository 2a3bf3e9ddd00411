"""Errors of reads and writes with Spark, with sentences that say what to do."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

from headrace.client.errors import ClientError
from headrace.tables.reader.errors import Loss, OnLoss

logger = logging.getLogger(__name__)


class Remedy(NamedTuple):
    """What can be done about lost records."""

    advice: str  # if the query fails
    instead: str  # what happens if failOnDataLoss is false


RETENTION: Final = Remedy(
    "Set the option failOnDataLoss to false to continue with the remaining records, "
    "or keep records for longer (the topic's retention.ms and retention.bytes).",
    "the lost records are skipped",
)
RECREATED: Final = Remedy(
    "Set the option failOnDataLoss to false to read the new topic from its first record, "
    "or start the query with a new checkpoint.",
    "the new topic is read from its first record",
)
UNRECORDED: Final = Remedy(
    "Set the option initialOffsets to where it begins (Spark's own Kafka source keeps that in sources/0/0 of "
    "the checkpoint), or set failOnDataLoss to false to continue after that batch.",
    "the query continues after that batch",
)


_REMEDIES: Final = {Loss.DELETED: RETENTION, Loss.RECREATED: RECREATED}


class SparkError(Exception):
    """A read or write cannot be done; the message says why and what to do."""


class InvalidOption(SparkError):
    """An option that is unknown or missing, or has an invalid value."""

    def __init__(self, option: str, why: str) -> None:
        super().__init__(f"option {option!r}: {why}")


class DataLoss(SparkError):
    """Records that were to be read do not exist any more."""

    def __init__(self, what: str, remedy: Remedy = RETENTION) -> None:
        what = what if what.endswith("?") else f"{what}."
        super().__init__(f"{what} {remedy.advice}")


@contextmanager
def spark_errors() -> Iterator[None]:
    """Raise SparkError instead of an error of clients or of the reader."""
    try:
        yield
    except ClientError as error:
        raise SparkError(str(error)) from error


def lose(what: str, remedy: Remedy, *, fails: bool) -> None:
    """Raise DataLoss if failOnDataLoss is set; otherwise log what is lost."""
    if fails:
        raise DataLoss(what, remedy)
    logger.warning("%s; failOnDataLoss is false: %s", what, remedy.instead)


def on_loss(*, fails: bool) -> OnLoss:
    """Return what a reader calls for lost records."""
    return lambda what, loss: lose(what, _REMEDIES[loss], fails=fails)
