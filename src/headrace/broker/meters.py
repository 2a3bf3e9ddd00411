"""What a broker counts while it works: a few additions a request, and nothing that has to be locked."""

from time import perf_counter
from typing import Final

BUCKETS: Final = 36
"""Bucket n has requests of less than 2^n microseconds; the last also those of more than nine hours."""
_MICROSECONDS: Final = 1e6


class TopicMeter:
    """What has gone in and out of this broker's partitions of one topic."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetches",
        "isr_expands",
        "isr_shrinks",
        "messages_in",
        "produces",
        "replicated_in",
        "replicated_out",
    )

    def __init__(self) -> None:
        self.messages_in = self.bytes_in = self.bytes_out = 0
        self.replicated_in = self.replicated_out = 0
        self.produces = self.failed_produces = 0  # batches
        self.fetches = self.failed_fetches = 0  # partitions that a reply had something of, or about
        self.isr_shrinks = self.isr_expands = 0

    def appended(self, messages: int, size: int) -> None:
        """A client's batch is in the log."""
        self.produces += 1
        self.messages_in += messages
        self.bytes_in += size


class RequestMeter:
    """How many requests of one kind there were, and how long each was under way."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * BUCKETS

    def done(self, began: float) -> None:
        """One that came in at `began`, by perf_counter, has its answer."""
        took = perf_counter() - began
        self.count += 1
        self.seconds += took
        self.buckets[min(int(took * _MICROSECONDS).bit_length(), BUCKETS - 1)] += 1


class Meters:
    """All meters of one broker. Topics have one each; what names no topic of ours is counted together."""

    def __init__(self) -> None:
        self.requests: dict[int, RequestMeter] = {}
        self.topics: dict[str, TopicMeter] = {}
        self.elsewhere = TopicMeter()

    def request(self, key: int) -> RequestMeter:
        """The meter of an API."""
        meter = self.requests.get(key)
        if meter is None:
            meter = self.requests[key] = RequestMeter()
        return meter

    def topic(self, name: str) -> TopicMeter:
        """The meter of a topic of which this broker has a partition; made if there is none."""
        meter = self.topics.get(name)
        if meter is None:
            meter = self.topics[name] = TopicMeter()
        return meter

    def of(self, name: str) -> TopicMeter:
        """The meter of a topic that somebody has named, whether there is such a one or not."""
        return self.topics.get(name, self.elsewhere)

    def forget(self, name: str) -> None:
        """The topic is gone; what it has added to the sums stays, as a counter never goes down."""
        gone = self.topics.pop(name, None)
        for counted in TopicMeter.__slots__ if gone is not None else ():
            setattr(self.elsewhere, counted, getattr(self.elsewhere, counted) + getattr(gone, counted))
