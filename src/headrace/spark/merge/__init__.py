"""Upserts into Delta and Iceberg tables: one MERGE per batch of a stream, computed by Spark's executors.

The files that contain keys of the batch are replaced by new ones in one commit, which also contains the ids
of the query and of the batch. `merge.py` has the steps.
"""
