"""The order of rows in which files have narrow bounds, so that readers skip more of them.

By one column, rows are sorted. By several, they are in Z-order: the bits of the ranks of their values are
interleaved, so that every column has narrow bounds, and not only the first one.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.spark.errors import SparkError

COLUMNS: Final = 4
_BITS: Final = 16  # of a rank: 4 columns fit into 64 bits
_ROWS: Final = 65_536  # of a batch


class NotClustered(SparkError):
    """The rows cannot be put in the order of these columns."""


def arranged(batches: Iterable[pa.RecordBatch], columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield all rows in the order of the columns; without columns, as they are."""
    if not columns:
        yield from batches
        return
    found = list(batches)
    if found:
        table = pa.Table.from_batches(found)
        yield from table.take(order(table, columns)).combine_chunks().to_batches(max_chunksize=_ROWS)


def order(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """Return the numbers of the rows in their new order; nulls are last."""
    if len(columns) > COLUMNS:
        raise NotClustered(f"{len(columns)} columns are too many: at most {COLUMNS} can be interleaved")
    if missing := [name for name in columns if name not in table.column_names]:
        raise NotClustered(f"there is no column {missing[0]!r} in the files of the table")
    try:
        ranks = [pc.rank(table.column(name), tiebreaker="dense").to_numpy() for name in columns]
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise NotClustered(f"these columns have no order: {error}") from error
    if len(ranks) == 1:
        return pa.array(np.argsort(ranks[0], kind="stable"))
    interleaved = np.zeros(len(ranks[0]), np.uint64)
    for n, rank in enumerate(ranks):
        most = int(rank.max(initial=1)) - 1
        scaled = (rank.astype(np.uint64) - 1) * (2**_BITS - 1) // max(1, most)
        for bit in range(_BITS):
            interleaved |= ((scaled >> np.uint64(bit)) & np.uint64(1)) << np.uint64(bit * len(ranks) + n)
    return pa.array(np.argsort(interleaved, kind="stable"))
