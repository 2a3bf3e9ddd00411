"""The segments of a log in the order of their offsets, as reads, retention and truncation look at them.

A segment knows where its bytes are and reads them; this sequence knows only offsets. The log start offset is
not here: records before it may still be in a segment, and it may lie before the first segment of this disk
(`local_start_offset`) once older segments are somewhere else.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import pairwise

from headrace.storage.segment import Segment


class Segments(list[Segment]):
    """At least one segment; the last is the active one, to which batches are appended."""

    @property
    def local_start_offset(self) -> int:
        """The first offset that a segment on this disk may have."""
        return self[0].base_offset

    @property
    def size(self) -> int:
        return sum(segment.size for segment in self)

    def number_of(self, offset: int) -> int:
        """Return the index of the segment with `offset`: the last one that begins at it or before it."""
        return max(0, bisect_right(self, offset, key=lambda segment: segment.base_offset) - 1)

    def of(self, offset: int) -> Segment:
        return self[self.number_of(offset)]

    def starting_with(self, offset: int) -> list[Segment]:
        """Return the segment with `offset`, and all after it."""
        return self[self.number_of(offset) :]

    def closed(self) -> Iterator[tuple[Segment, int]]:
        """Yield all segments but the active one, each with its end offset: the next one's base offset."""
        for segment, after in pairwise(self):
            yield segment, after.base_offset
