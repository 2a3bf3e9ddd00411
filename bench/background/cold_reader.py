"""A consumer that reads a topic from its start to its end, again and again."""

from attacks.target import Target
from compare.drive import Endpoint, drive
from compare.raw import ProduceSource
from compare.wire import MIB, VERSIONS, FetchTemplate
from headrace.client.wire.requests import whole_batches
from headrace.protocol.api import ApiKey
from headrace.protocol.batch import read_header
from headrace.protocol.headers import decode_response_header
from headrace.protocol.schema.fetch import FetchResponse


def read_all(target: Target, seconds: float, *, topic: bytes) -> str:
    """Fetch the topic from its start to its end, up to 1 MiB at a time, until the time is over."""
    done = drive(
        Endpoint(target.plain),
        lambda _number: _Sequential(topic),
        connections=1,
        depth=1,
        seconds=seconds,
        max_bytes=1 << 40,
    )
    return f"the consumer read {done.data_bytes / done.seconds / 1e6:,.0f} MB/s"


class _Sequential(ProduceSource):
    """Fetches batch after batch, and begins again at the end."""

    def __init__(self, topic: bytes) -> None:
        super().__init__(b"", 0)
        self._template = FetchTemplate(topic, MIB, max_wait_ms=0)
        self._offset = 0

    def next(self) -> bytes:
        return self._template.at(self._offset)

    def answered(self, frame: memoryview) -> int:
        _, body = decode_response_header(ApiKey.FETCH, VERSIONS[ApiKey.FETCH], frame)
        found = FetchResponse.decode(body, VERSIONS[ApiKey.FETCH]).responses[0].partitions[0]
        assert not found.error_code, f"Fetch was answered with error {found.error_code}"
        batches = list(whole_batches(found.records or b""))
        self._offset = read_header(batches[-1]).next_offset if batches else 0
        return sum(len(batch) for batch in batches)
