"""StepDown (key 10001), v0: the controller asks a leader to hand over leadership to another replica.

The leader agrees when it has stopped accepting writes and the next leader has every record of its log. Kafka
has no such message: its controller replaces a live leader without asking, and acks=1 writes may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.protocol.message import Message, Struct, field

STEP_DOWN: Final = 10_001


class StepDownPartition(Struct):
    topic_name: str = field("string", "0+")
    partition_index: int = field("int32", "0+")
    partition_epoch: int = field("int32", "0+")
    next_leader: int = field("int32", "0+")


class StepDownRequest(Message, key=STEP_DOWN, versions="0", flexible="0+"):
    controller_epoch: int = field("int32", "0+")
    broker_epoch: int = field("int64", "0+")
    timeout_ms: int = field("int32", "0+")
    partitions: Sequence[StepDownPartition] = field("[]StepDownPartition", "0+")


class AgreedPartition(Struct):
    topic_name: str = field("string", "0+")
    partition_index: int = field("int32", "0+")


class StepDownResponse(Message, key=STEP_DOWN, versions="0", flexible="0+"):
    error_code: int = field("int16", "0+", default=0)
    agreed: Sequence[AgreedPartition] = field("[]AgreedPartition", "0+")
    """The partitions whose leader has stepped down; the others are unchanged."""
