"""What a person who reads or writes a topic with Spark can do something about, each as a sentence."""

from typing import Final, NamedTuple


class Remedy(NamedTuple):
    """What can be done about a loss of records."""

    advice: str  # to whoever runs a query that fails for it
    instead: str  # what a query does that may lose records


RETENTION: Final = Remedy(
    "Set the option failOnDataLoss to false to go on with what is there, "
    "or keep records for longer (the topic's retention.ms and retention.bytes).",
    "what is lost is skipped",
)
RECREATED: Final = Remedy(
    "Set the option failOnDataLoss to false to read the new topic from its first record, "
    "or start the query with a new checkpoint.",
    "the new topic is read from its first record",
)
UNRECORDED: Final = Remedy(
    "Set the option initialOffsets to where it begins (Spark's own Kafka source keeps that in sources/0/0 of "
    "the checkpoint), or set failOnDataLoss to false to go on after that batch.",
    "the query goes on after that batch",
)


class SparkError(Exception):
    """Something is wrong with what was asked for, or with the topic; the sentence says what to do."""


class InvalidOption(SparkError):
    """An option that is not known, that is missing, or whose value makes no sense."""

    def __init__(self, option: str, why: str) -> None:
        super().__init__(f"option {option!r}: {why}")


class DataLoss(SparkError):
    """Records that were to be read are not there any more."""

    def __init__(self, what: str, remedy: Remedy = RETENTION) -> None:
        what = what if what.endswith("?") else f"{what}."
        super().__init__(f"{what} {remedy.advice}")
