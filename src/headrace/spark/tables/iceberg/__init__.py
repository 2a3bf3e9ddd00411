"""Iceberg tables as targets, through the package pyiceberg: appends, evolution, maintenance, compaction.

`sink.py` is the data source, `table.py` a table and its commits, `schema.py`, `spec.py` and `partitions.py`
its columns and partitions, `compaction.py` and `maintenance.py` rewrite and expire beside other writers.
"""
