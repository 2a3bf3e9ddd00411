"""Queries of `headrace sql`: topics as tables of DuckDB, and rows as lines, tables and files.

`tables.py` runs a query, `dataset.py` reads the topics that it names, `output.py` writes its rows. The
command `headrace sql` and `headrace.duckdb` import it.
"""
