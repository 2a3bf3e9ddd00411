"""Where partitions begin and end: their leaders are asked, all at once."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from headrace.client.wire.leader_offsets import EARLIEST, LATEST, leaders, read_offsets
from headrace.client.wire.live_brokers import QUESTION_S, LiveBrokers, Node
from headrace.client.wire.settling import Patience
from headrace.protocol.ids import TopicPartition
from headrace.protocol.schema.metadata import MetadataResponse

MISSED_S: Final = 1.0  # for asking those again without whom there is an answer too


class Spans(NamedTuple):
    """Both ends of each partition; None, or not there, where nobody who would know answers."""

    starts: dict[TopicPartition, int | None]
    ends: dict[TopicPartition, int | None]

    def records(self, place: TopicPartition) -> int | None:
        """Offsets that were given out and are still in the log."""
        start, end = self.starts.get(place), self.ends.get(place)
        return None if start is None or end is None else end - start


def read_spans(brokers: LiveBrokers, found: MetadataResponse, places: Iterable[TopicPartition]) -> Spans:
    """Of these partitions; `found` has said who leads them."""
    led = {place: at for place, at in leaders(found, places).items() if isinstance(at, Node)}
    starts, ends = (
        read_offsets(brokers, led, time_ms, Patience(QUESTION_S, retries_s=MISSED_S), led).answers
        for time_ms in (EARLIEST, LATEST)
    )
    return Spans(starts, ends)
