"""The topics of the background work: filled before, and changed to start the work."""

import itertools
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from compare.drive import Endpoint, drive
from compare.raw import ProduceSource
from compare.wire import MIB, Batch, ask, produce_request, topic_id
from headrace.client.wire.connection import Address
from headrace.protocol.records import Record, encode_batch
from headrace.protocol.schema.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from headrace.protocol.schema.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

VALUE_BYTES: Final = 1000
KEYS: Final = 200_000
DIFFERENT_BATCHES: Final = 64
BATCH_BYTES: Final = 512 * 1024
_TOPIC: Final = 2  # the resource type


class Filled:
    """A topic with one partition, full of keyed records."""

    def __init__(self, address: Address, data: Path, name: str, settings: Mapping[str, str]) -> None:
        self._address = address
        self._name = name
        self.directory = data / f"{name}-0"
        _create(address, name, settings)
        self.id = topic_id(address, name)

    @property
    def size(self) -> int:
        """The size of its segments, compacted ones that are not in place included."""
        size = 0
        for path in self.directory.glob("*.log*"):
            with suppress(FileNotFoundError):  # it was deleted meanwhile
                size += path.stat().st_size
        return size

    @property
    def segments(self) -> int:
        return len(list(self.directory.glob("*.log")))

    @property
    def is_being_compacted(self) -> bool:
        return any(self.directory.glob("*.cleaned"))

    def fill(self, size: int) -> None:
        """Produce so many bytes of records with random keys."""
        frames = itertools.cycle([produce_request(self.id, batch) for batch in _batches()])
        drive(
            Endpoint(self._address),
            lambda _number: _Frames(frames),
            connections=1,
            depth=2,
            seconds=600.0,
            max_bytes=size,
        )

    def change(self, **settings: str) -> None:
        """Change settings of the topic, with underscores for dots."""
        configs = [
            AlterableConfig(name=name.replace("_", "."), config_operation=0, value=value)
            for name, value in settings.items()
        ]
        resource = AlterConfigsResource(resource_type=_TOPIC, resource_name=self._name, configs=configs)
        response = ask(
            self._address, IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)
        )
        assert not response.responses[0].error_code, response

    def drop_from_page_cache(self) -> None:
        """Write its segments to the disk, and have the kernel forget their content."""
        for path in self.directory.glob("*.*"):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


class _Frames(ProduceSource):
    def __init__(self, frames: Iterator[bytes]) -> None:
        super().__init__(b"", BATCH_BYTES)
        self._frames = frames

    def next(self) -> bytes:
        return next(self._frames)


def _create(address: Address, name: str, settings: Mapping[str, str]) -> None:
    topic = CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        assignments=(),
        configs=[CreatableTopicConfig(name=each, value=value) for each, value in settings.items()],
    )
    response = ask(address, CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
    assert not response.topics[0].error_code, response


def _batches() -> Iterator[Batch]:
    """Yield batches of different records; most of their keys are in other batches as well."""
    now_ms = time.time_ns() // 1_000_000
    count = BATCH_BYTES // (VALUE_BYTES + 30)
    numbers = itertools.count()
    assert count * VALUE_BYTES < MIB
    for _ in range(DIFFERENT_BATCHES):
        value = os.urandom(VALUE_BYTES)
        keys = [b"key-%012d" % (next(numbers) % KEYS) for _ in range(count)]
        yield Batch(bytes(encode_batch([Record(key, value, timestamp=now_ms) for key in keys])), count)
