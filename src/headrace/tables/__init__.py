"""Topics as tables, without Spark: Arrow columns, Polars, DuckDB and `headrace sql`.

`reader` fetches ranges of a topic and turns batches into Arrow columns with compiled code; `registry`
decodes values by their schemas; `arrow` scans topics with bounds and filters; `sql` runs queries. Users
import the modules `headrace.arrow`, `headrace.polars` and `headrace.duckdb`.

`spark` uses `reader` and `registry`, too. Begin with `arrow/scan.py`.
"""
