"""The counters of a broker. Only the event loop changes them, so they need no lock."""

from time import perf_counter
from typing import Final

BUCKETS: Final = 36
"""Bucket n counts requests of less than 2^n microseconds; the last one also counts all longer requests."""
_MICROSECONDS: Final = 1e6


class TopicMeter:
    """The counters of this broker's partitions of one topic."""

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
        self.fetches = self.failed_fetches = 0  # partitions with data or an error in a response
        self.isr_shrinks = self.isr_expands = 0

    def appended(self, messages: int, size: int) -> None:
        """Count a batch that was appended for a producer."""
        self.produces += 1
        self.messages_in += messages
        self.bytes_in += size


class RequestMeter:
    """The number and the durations of the requests of one API."""

    __slots__ = ("buckets", "count", "seconds")

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.buckets = [0] * BUCKETS

    def done(self, began: float) -> None:
        """Count a request that arrived at `began`, by perf_counter, and is answered now."""
        took = perf_counter() - began
        self.count += 1
        self.seconds += took
        self.buckets[min(int(took * _MICROSECONDS).bit_length(), BUCKETS - 1)] += 1


class Meters:
    """All meters of one broker. Requests for topics without a partition here share one topic meter."""

    def __init__(self) -> None:
        self.requests: dict[int, RequestMeter] = {}
        self.topics: dict[str, TopicMeter] = {}
        self.elsewhere = TopicMeter()
        self.failed_authentications = 0

    def request(self, key: int) -> RequestMeter:
        """Return the meter of an API."""
        meter = self.requests.get(key)
        if meter is None:
            meter = self.requests[key] = RequestMeter()
        return meter

    def topic(self, name: str) -> TopicMeter:
        """Return the meter of a topic of which this broker has a partition; create it if necessary."""
        meter = self.topics.get(name)
        if meter is None:
            meter = self.topics[name] = TopicMeter()
        return meter

    def of(self, name: str) -> TopicMeter:
        """Return the meter of a topic that a request names, which need not exist."""
        return self.topics.get(name, self.elsewhere)

    def forget(self, name: str) -> None:
        """Remove the meter of a deleted topic; its counts stay in the totals, which never decrease."""
        removed = self.topics.pop(name, None)
        for counter in TopicMeter.__slots__ if removed is not None else ():
            setattr(self.elsewhere, counter, getattr(self.elsewhere, counter) + getattr(removed, counter))
