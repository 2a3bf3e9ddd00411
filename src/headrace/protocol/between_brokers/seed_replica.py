"""SeedReplica (key 10002), v0: a broker asks another one of its node for the files of a partition.

The receiver links its closed segments below the high watermark into a directory of the sender, on the same
file system. Kafka has no such message: a new replica fetches every record from its leader.
"""

from __future__ import annotations

from typing import Final

from headrace.protocol.message import Message, field

SEED_REPLICA: Final = 10_002


class SeedReplicaRequest(Message, key=SEED_REPLICA, versions="0", flexible="0+"):
    broker_id: int = field("int32", "0+")
    """The sender."""
    topic_name: str = field("string", "0+")
    topic_id: bytes = field("uuid", "0+")
    partition_index: int = field("int32", "0+")
    staging_directory: str = field("string", "0+")
    """The absolute path of an empty directory in the sender's log directory."""


class SeedReplicaResponse(Message, key=SEED_REPLICA, versions="0", flexible="0+"):
    error_code: int = field("int16", "0+", default=0)
    error_message: str | None = field("string", "0+", nullable="0+", default=None)
    log_start_offset: int = field("int64", "0+", default=-1)
    end_offset: int = field("int64", "0+", default=-1)
    """The offset after the last linked record; equal to the log start offset if nothing was linked."""
