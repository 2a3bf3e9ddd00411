"""Queries of `headrace sql`: topics as tables of DuckDB, and rows as lines, tables and files.

`tables.py` runs a query and reads the topics that it names, `output.py` writes its rows. Only `cli/sql.py`
imports it.
"""
