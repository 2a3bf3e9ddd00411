"""Splits a stream of bytes into its JSON objects, looking at each byte once."""

import re
from collections.abc import Iterator
from typing import Final

_OUTSIDE: Final = re.compile(rb'["{}\[\]]')
_INSIDE: Final = re.compile(rb'["\\]')
_BETWEEN: Final = b" \t\r\n,\x1e"  # separators of JSON lines, lists and text sequences, too
_NOT_BETWEEN: Final = re.compile(rb"[^ \t\r\n,\x1e]")


class NotAnObject(ValueError):
    """The next part of the stream is not a JSON object, so the rest cannot be split either."""


class Splitter:
    """Takes bytes as they arrive, and returns the text of each complete object.

    list(splitter.feed(b'{"a": 1} {"b"')) -> [b'{"a": 1}']; the rest belongs to the next call.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._kept = bytearray()
        self._scanned = 0  # bytes of `_kept`
        self._depth = 0
        self._in_text = False

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the objects that end in `data`; raise NotAnObject for anything else."""
        self._kept += data
        while (end := self._end()) is not None:
            found = bytes(self._kept[:end])
            del self._kept[:end]
            self._scanned = 0
            yield found
        if len(self._kept) > self._most:
            raise NotAnObject(f"an object has more than {self._most:,} bytes")

    def finish(self) -> None:
        """Raise NotAnObject if the stream has ended in the middle of an object."""
        if self._kept.strip(_BETWEEN):
            raise NotAnObject("the body ends in the middle of a JSON object")

    def _end(self) -> int | None:
        """Return where the first object ends, or None if it is not complete."""
        if not self._depth and not self._begin():
            return None
        while True:
            found = (_INSIDE if self._in_text else _OUTSIDE).search(self._kept, self._scanned)
            if found is None:
                self._scanned = len(self._kept)
                return None
            if self._in_text and found[0] == b"\\":
                if found.end() == len(self._kept):
                    self._scanned = found.start()  # the escaped character is in the next chunk
                    return None
                self._scanned = found.end() + 1
                continue
            self._scanned = found.end()
            if found[0] == b'"':
                self._in_text = not self._in_text
            else:
                self._depth += 1 if found[0] in {b"{", b"["} else -1
            if not self._depth:
                return found.end()

    def _begin(self) -> bool:
        """Return whether an object begins after the separators; drop the separators."""
        found = _NOT_BETWEEN.search(self._kept)  # without a copy: much may follow
        if found is None:
            self._kept.clear()
            return False
        begins = found.start()
        del found  # the match exports the buffer, which then cannot be resized
        del self._kept[:begins]
        if self._kept[:1] != b"{":
            raise NotAnObject(f"expected a JSON object, got {bytes(self._kept[:20])!r}")
        self._depth, self._scanned, self._in_text = 1, 1, False
        return True
