"""What a person who reads or writes a topic with Spark can do something about, each as a sentence."""


class SparkError(Exception):
    """Something is wrong with what was asked for, or with the topic; the sentence says what to do."""


class InvalidOption(SparkError):
    """An option that is not known, that is missing, or whose value makes no sense."""

    def __init__(self, option: str, why: str) -> None:
        super().__init__(f"option {option!r}: {why}")


class DataLoss(SparkError):
    """Records that were to be read are not there any more."""

    def __init__(self, what: str) -> None:
        what = what if what.endswith("?") else f"{what}."
        super().__init__(
            f"{what} Set the option failOnDataLoss to false to go on with what is there, "
            "or keep records for longer (the topic's retention.ms and retention.bytes)."
        )
