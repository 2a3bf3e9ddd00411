"""The compiled part of checks of JSON: it finds the few texts that Python has to look at."""

from typing import TYPE_CHECKING, Final

import numpy as np

from headrace.tables.reader.compiled import Bytes, Ints, compiled

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_KEYS: Final = 128  # of all objects that are open at one place of a text
_MAX_DEPTH: Final = 32
_FNV_BASIS: Final = 0xCBF29CE484222325
_FNV_PRIME: Final = 0x100000001B3


@compiled
def _scan(ends: Ints, data: Bytes, marks: Bytes) -> None:  # noqa: C901, PLR0912  one pass
    """Mark texts that are not surely one JSON value whose objects have each key once.

    Keys are compared by their hashes. A key with an escape sequence, a deep text or an object of many keys is
    marked as well.
    """
    keys = np.empty(_MAX_KEYS, np.uint64)
    first_keys = np.empty(_MAX_DEPTH, np.int64)  # the index of the first key of each open object
    for row in range(len(marks)):
        at, end = ends[row], ends[row + 1]
        depth, count = 0, 0
        is_string, has_escape, is_complete, is_odd = False, False, False, False
        hashed = np.uint64(_FNV_BASIS)
        while at < end and not is_odd:
            byte = data[at]
            at += 1
            if is_complete:
                is_odd = byte != 32 and byte != 10 and byte != 13 and byte != 9  # noqa: PLR1714  a set is slow
            elif byte == 34 or byte == 39:  # noqa: PLR1714  Spark reads single quotes, too
                hashed, is_string, has_escape = np.uint64(_FNV_BASIS), True, False
                while at < end and data[at] != byte:
                    if data[at] == 92:  # a backslash
                        has_escape = True
                        at += 1
                    else:
                        hashed = (hashed ^ np.uint64(data[at])) * np.uint64(_FNV_PRIME)
                    at += 1
                at += 1
            elif byte == 58 and is_string:  # a colon: the string was a key
                is_odd = has_escape or count == _MAX_KEYS
                for i in range(first_keys[depth], count):
                    is_odd |= keys[i] == hashed
                if not is_odd:
                    keys[count] = hashed
                    count += 1
                is_string = False
            elif byte | 32 == 123:  # { or [
                depth += 1
                is_odd = depth == _MAX_DEPTH
                if not is_odd:
                    first_keys[depth] = count
            elif byte | 32 == 125 and depth:  # } or ]
                count = first_keys[depth]
                depth -= 1
                is_complete = depth == 0
        marks[row] = is_odd or depth > 0


def odd_texts(texts: "pa.StringArray") -> Bytes:
    """Return a byte for each text: 0 if it is one JSON value, or none, and no object has a key twice."""
    _, ends, data = texts.buffers()
    marks = np.zeros(len(texts), np.uint8)
    if data is not None:
        _scan(
            np.frombuffer(ends, np.int32)[texts.offset : texts.offset + len(texts) + 1],
            np.frombuffer(data, np.uint8),
            marks,
        )
    return marks


def load() -> None:
    """Load the compiled code, before the first text arrives."""
    _scan(np.frombuffer(bytes(4), np.int32), np.frombuffer(b"", np.uint8), np.zeros(0, np.uint8))
