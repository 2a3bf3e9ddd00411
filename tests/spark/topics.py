"""What the tests read: topics of the shared broker that nobody changes."""

from collections.abc import Iterable
from typing import Any, Final

from cluster.waiting import until
from compat.kafka_tools.samples import FIRST_TIMESTAMP_MS, Sample, rewrites, samples
from wire.confluent import make_topic, read, send, sent_offsets

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
PER_CODEC: Final = 40
SIZES: Final = (2000, 30, 0, 7)  # of the partitions of `skewed`
REWRITES: Final = 300
SETTINGS: Final = {"log.cleaner.backoff.ms": "100"}
FOREVER: Final = "-1"  # the samples' timestamps are years old


def fill_topics(bootstrap: str) -> None:
    """Make the topics.

    shapes       a partition for each codec: records with and without keys, values, headers; steps in time
    skewed       partitions of very different sizes, one of them empty, a second between timestamps
    append-time  timestamps are the broker's
    compacted    of many records with the same keys, the latest; offsets have holes
    empty        no record at all
    """
    make_topic(bootstrap, "shapes", partitions=len(CODECS), retention_ms=FOREVER)
    for partition, codec in enumerate(CODECS):
        write(bootstrap, "shapes", samples(PER_CODEC), partition, compression_type=codec)
    make_topic(bootstrap, "skewed", partitions=len(SIZES), retention_ms=FOREVER)
    for partition, size in enumerate(SIZES):
        write(bootstrap, "skewed", plain(size), partition, batch_num_messages=100)
    make_topic(bootstrap, "append-time", message_timestamp_type="LogAppendTime")
    write(bootstrap, "append-time", samples(20))
    make_topic(bootstrap, "empty", partitions=2)
    make_topic(
        bootstrap,
        "compacted",
        cleanup_policy="compact",
        segment_bytes="65536",
        min_cleanable_dirty_ratio="0",
        min_compaction_lag_ms="0",
    )
    write(bootstrap, "compacted", rewrites(REWRITES, size=1000), batch_num_messages=7)
    until("the topic is compacted", lambda: len(read(bootstrap, "compacted")) < REWRITES // 2)


def plain(count: int, *, first: int = 0) -> list[Sample]:
    """Records that only differ in their numbers."""
    return [
        Sample(key=b"k%d" % n, value=b"value %d" % n, timestamp_ms=FIRST_TIMESTAMP_MS + n * 1000)
        for n in range(first, first + count)
    ]


def write(
    bootstrap: str, topic: str, records: Iterable[Sample], partition: int = 0, **settings: Any
) -> list[int]:
    """Produce to one partition; return the offsets."""
    messages = [
        {
            "key": each.key,
            "value": each.value,
            "headers": list(each.headers),
            "timestamp": each.timestamp_ms,
            "partition": partition,
        }
        for each in records
    ]
    return sent_offsets(send(bootstrap, topic, messages, linger_ms=20, **settings))
