"""The position of a source in a checkpoint: offsets, topic ids, and the offsets of the first batch.

Spark's own Kafka source keeps `{"orders": {"0": 17}}`. Ours adds a key that is `headrace:` and
the rest as JSON, with the value `{}`. Other readers take it for a topic without partitions. So Spark's own
source and earlier versions of ours can continue from our checkpoints, and we from theirs.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from headrace.spark.offsets import from_json, to_json
from headrace.tables.reader.offsets import Offsets

_NOTE: Final = "headrace:"  # a topic's name has no colon
_TOPIC_IDS: Final = "topicIds"
_INITIAL_OFFSETS: Final = "initialOffsets"

INITIAL: Final[Mapping[str, Mapping[str, int]]] = {f'{_NOTE}{{"initial":true}}': {}}
"""The start of a new query, before its offsets are looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """How far a query has read."""

    offsets: Offsets
    topic_ids: Mapping[str, str] = field(default_factory=dict)  # those that are known
    initial_offsets: Offsets | None = None  # where the first batch begins; in the end of that batch alone

    def to_json(self) -> dict[str, Any]:
        topics = {partition.topic for partition in self.offsets}
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
        """Return this position as if `topics` had not been read."""
        gone = set(topics)
        return Position(
            offsets={each: offset for each, offset in self.offsets.items() if each.topic not in gone},
            topic_ids={topic: each for topic, each in self.topic_ids.items() if topic not in gone},
        )

    def recreated(self, topic_ids: Mapping[str, str]) -> list[str]:
        """Return the topics whose id in `topic_ids` differs: each was deleted and recreated."""
        return sorted(
            topic for topic, known in self.topic_ids.items() if topic_ids.get(topic, known) != known
        )


def is_initial(value: Mapping[str, Any]) -> bool:
    """Whether Spark's JSON is INITIAL."""
    return dict(value) == INITIAL
