"""Topics as Spark's DataFrames, read and written through PySpark's Python Data Source API: no jar."""
