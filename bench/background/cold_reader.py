"""A consumer that reads a topic from its start to its end, again and again."""

from attacks.target import Target
from compare.drive import Endpoint, drive
from compare.raw import ProduceSource
from compare.wire import ERROR_AT, MIB, FetchTemplate
from headrace.protocol.api import ApiKey
from headrace.protocol.batch import read_header


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
        at = ERROR_AT[ApiKey.FETCH]
        assert not int.from_bytes(frame[at : at + 2], "big"), "Fetch was answered with an error"
        found = bytes(frame).find(self._offset.to_bytes(8, "big"), at)
        size = 0
        while 0 <= found + size < len(frame) - 61:
            header = read_header(frame, found + size)
            if header.magic != 2 or header.base_offset != self._offset:
                break
            self._offset = header.next_offset
            size += header.size
        if not size:
            self._offset = 0
        return size
