"""Queries of `headrace sql`: topics as tables of DuckDB, and rows as lines, tables and files."""
