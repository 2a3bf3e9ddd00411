"""ZooKeeper's multiRead (since 3.6), which kazoo does not have: many znodes in one request.

A controller that begins reads the state of every partition. One request for each costs kazoo some system
calls and two changes of threads, which are seconds for ten thousand partitions.
"""

from collections.abc import Sequence
from typing import Any, Final

from kazoo.exceptions import EXCEPTIONS, KazooException
from kazoo.protocol.serialization import GetData, MultiHeader, int_struct, multiheader_struct, stat_struct

_ERROR = -1  # as the type of a result


class MultiRead:
    """The request in the form that kazoo's connection expects: `type`, `serialize` and `deserialize`."""

    type: Final = 22

    def __init__(self, paths: Sequence[str]) -> None:
        self.paths = paths

    def serialize(self) -> bytes:
        header = multiheader_struct.pack(GetData.type, False, -1)
        end = multiheader_struct.pack(-1, True, -1)
        return b"".join([*(header + GetData(path, None).serialize() for path in self.paths), end])

    @classmethod
    def deserialize(cls, data: bytes, offset: int) -> list[Any]:
        """Return a pair of content and stat for each path, or the KazooException of that path."""
        results: list[tuple[bytes, Any] | KazooException] = []
        header, offset = MultiHeader.deserialize(data, offset)
        while not header.done:
            if header.type == _ERROR:
                (error,) = int_struct.unpack_from(data, offset)
                results.append(EXCEPTIONS[error]())
                offset += int_struct.size
            else:
                content, stat = GetData.deserialize(data, offset)
                results.append((content, stat))
                offset += int_struct.size + len(content or b"") + stat_struct.size
            header, offset = MultiHeader.deserialize(data, offset)
        return results
