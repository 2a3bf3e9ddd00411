"""Topics as Spark's DataFrames, read and written through PySpark's Python Data Source API: no jar.

`source.py` is `format("headrace")`; `planner.py` plans ranges on the driver, executors read them with
`headrace.tables.reader`. `batch.py` has the writers of all sinks: `sink.py` and `transactional_sink.py` write
topics, `tables` writes Delta and Iceberg, `merge` applies upserts. `launcher.py` starts a session.

Importing it needs PySpark. `pipeline` imports it, and users through Spark. Begin with `source.py`.
"""
