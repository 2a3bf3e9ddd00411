"""Scans of topics as Arrow tables and record batches, behind the public module `headrace.arrow`.

`scan.py` is a scan of topics with its bounds (`bounds.py`), decoding (`decoding.py`) and parallel readers
(`parallel.py`); `reading.py` has the functions that users call.

`headrace.arrow`, `.polars`, `.duckdb` and `tables/sql` import it. Begin with `scan.py`.
"""
