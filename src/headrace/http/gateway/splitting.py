"""JSON objects one after the other in a stream of bytes: where each ends, found without reading it twice."""

import re
from collections.abc import Iterator
from typing import Final

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_BETWEEN: Final = b" \t\r\n,\x1e"  # also what JSON lines, lists and text sequences have there
_NOT_BETWEEN: Final = re.compile(rb"[^ \t\r\n,\x1e]")


class NotAnObject(ValueError):
    """What comes next in the stream is not a JSON object; nothing after it can be told apart."""


class Splitter:
    """Fed with bytes as they come, gives back the text of each whole object.

    list(splitter.feed(b'{"a": 1} {"b"')) -> [b'{"a": 1}'], and the rest with what is fed next.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept = bytearray()
        self._looked_at = 0  # of what is kept
        self._depth = 0
        self._in_text = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The objects that end in `data`; NotAnObject if something else is there, or one is too long."""
        self._kept += data
        while (end := self._end()) is not None:
            found = bytes(self._kept[:end])
            del self._kept[:end]
            self._looked_at = 0
            yield found
        if len(self._kept) > self._most:
            raise NotAnObject(f"an object has more than {self._most:,} bytes")

    def finish(self) -> None:
        """NotAnObject if the stream has ended in the middle of one."""
        if self._kept.strip(_BETWEEN):
            raise NotAnObject("the body ends in the middle of a JSON object")

    def _end(self) -> int | None:
        """Where the first object ends, if it does."""
        if not self._depth and not self._begin():
            return None
        while True:
            found = (_INSIDE if self._in_text else _OUTSIDE).search(self._kept, self._looked_at)
            if found is None:
                self._looked_at = len(self._kept)
                return None
            if self._in_text and found[0] == b"\\":
                if found.end() == len(self._kept):
                    self._looked_at = found.start()  # what is escaped is still to come
                    return None
                self._looked_at = found.end() + 1
                continue
            self._looked_at = found.end()
            self._step(found[0])
            if not self._depth:
                return found.end()

    def _begin(self) -> bool:
        """Whether an object begins, after what may be between two."""
        found = _NOT_BETWEEN.search(self._kept)  # which copies nothing: much may follow
        if found is None:
            self._kept.clear()
            return False
        begins = found.start()
        del found  # while it is looked at, what is kept cannot be cut
        del self._kept[:begins]
        if self._kept[:1] != b"{":
            raise NotAnObject(f"expected a JSON object, got {bytes(self._kept[:20])!r}")
        self._depth, self._looked_at, self._in_text = 1, 1, False
        return True

    def _step(self, sign: bytes) -> None:
        if sign == b'"':
            self._in_text = not self._in_text
        elif sign in {b"{", b"["}:
            self._depth += 1
        else:
            self._depth -= 1
