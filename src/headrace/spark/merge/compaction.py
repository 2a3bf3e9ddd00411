"""Which files a merge replaces although no event is about their rows: small ones."""

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from headrace.spark.merge.table import TableFile

SMALL: Final = 0.5  # of the target size: such files are merged
MERGED_BYTES: Final = 1 << 30  # in one batch


def small_files(files: Iterable[TableFile], target_file_bytes: int) -> list[str]:
    """Return the names of files to merge, the smallest first, of partitions that have several of them."""
    limit = target_file_bytes * SMALL
    small = sorted((each for each in files if each.size < limit), key=lambda each: (each.size, each.name))
    total = accumulate(each.size for each in small)
    chosen = [each for each, bytes_ in zip(small, total, strict=True) if bytes_ <= MERGED_BYTES]
    of_partition = Counter(each.partition for each in chosen)
    return [each.name for each in chosen if of_partition[each.partition] > 1]
