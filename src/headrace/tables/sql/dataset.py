"""Topics as datasets of Arrow, of which DuckDB reads only the columns and rows that a query needs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from headrace.tables.arrow.scan import Progress, Scan


@dataclass(frozen=True, slots=True)
class _Scanner:
    """What DuckDB uses of a pyarrow Scanner.

    A Scanner of pyarrow reads ahead in threads of its own, which continue after the query has ended. DuckDB
    calls the reader in threads of the query, and waits for them before the query ends.
    """

    reader: pa.RecordBatchReader

    def to_reader(self) -> pa.RecordBatchReader:
        return self.reader


class TopicDataset(ds.InMemoryDataset):  # type: ignore[misc]  # pyarrow has no types
    """A scan of topics as the kind of object that DuckDB pushes columns and filters into.

    Every query reads the topics anew.
    """

    def __init__(
        self,
        scan: Scan,
        progress: Progress | None = None,
        on_failure: Callable[[Exception], None] = lambda _: None,
    ) -> None:
        """`on_failure` gets the errors of reads, of which DuckDB raises only a text with a traceback."""
        super().__init__(pa.Table.from_batches([], scan.arrow_schema))
        self._scan = scan
        self._progress = progress
        self._on_failure = on_failure

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002  pyarrow's name
        **_options: Any,
    ) -> _Scanner:
        """Return what reads `columns` of the rows for which the filter holds."""
        names = self.schema.names if columns is None else list(columns)
        try:
            found = self._scan.batches(names, filter, progress=self._progress)
        except Exception as error:
            self._on_failure(error)
            raise
        return _Scanner(pa.RecordBatchReader.from_batches(self._scan.projected(names), self._watched(found)))

    def _watched(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        try:
            yield from batches
        except Exception as error:
            self._on_failure(error)
            raise
