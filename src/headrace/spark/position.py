"""What a checkpoint says of a source: offsets, the ids of their topics, and where the first batch begins.

Spark's own Kafka source keeps `{"orders": {"0": 17}}`. Ours adds a key that begins with `headrace:` and goes
on with the rest as JSON; its value is `{}`. Whoever does not know it sees a topic without partitions. So
Spark's own source and earlier versions of ours can continue from our checkpoints, and we from theirs.
"""

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.spark.offsets import Offsets, from_json, to_json

_NOTE: Final = "headrace:"  # a topic's name has no colon
_TOPIC_IDS: Final = "topicIds"
_INITIAL_OFFSETS: Final = "initialOffsets"

INITIAL: Final[Mapping[str, Mapping[str, int]]] = {f'{_NOTE}{{"initial":true}}': {}}
"""Where a new query begins, before anybody has looked up the offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a query has read."""

    offsets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # those that are known
    initial_offsets: Offsets | None = None  # where the first batch begins; in the end of that batch alone

    def to_json(self) -> dict[str, Any]:
        topics = {place.topic for place in self.offsets}
        ids = {topic: self.topic_ids[topic] for topic in sorted(topics) if topic in self.topic_ids}
        note: dict[str, Any] = {_TOPIC_IDS: ids} if ids else {}
        if self.initial_offsets is not None:
            note[_INITIAL_OFFSETS] = to_json(self.initial_offsets)
        found: dict[str, Any] = to_json(self.offsets)
        if note:
            found[_NOTE + json.dumps(note, separators=(",", ":"))] = {}
        return found

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Position":
        note: dict[str, Any] = {}
        for key in value:
            if key.startswith(_NOTE):
                note = json.loads(key.removeprefix(_NOTE))
        initial = note.get(_INITIAL_OFFSETS)
        return cls(
            offsets=from_json(value),
            topic_ids=note.get(_TOPIC_IDS, {}),
            initial_offsets=None if initial is None else from_json(initial),
        )

    def without(self, topics: Iterable[str]) -> "Position":
        """The same, as if nothing of `topics` had been read."""
        gone = set(topics)
        return Position(
            offsets={place: offset for place, offset in self.offsets.items() if place.topic not in gone},
            topic_ids={topic: each for topic, each in self.topic_ids.items() if topic not in gone},
        )

    def recreated(self, topic_ids: Mapping[str, str]) -> list[str]:
        """The topics that have another id in `topic_ids`: each was deleted, and another one has its name."""
        return sorted(
            topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known
        )


def is_initial(value: Mapping[str, Any]) -> bool:
    """Whether it is INITIAL, from Spark's JSON."""
    return dict(value) == INITIAL


def show_topic_id(topic_id: bytes) -> str | None:
    """A topic's id as Kafka's tools print it; None for a broker that has no ids (before Kafka 2.8)."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode() if any(topic_id) else None
