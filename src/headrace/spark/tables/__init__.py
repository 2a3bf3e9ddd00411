"""Tables that streams and DataFrames are written to, exactly once: Delta and Iceberg, without a jar.

Tasks write Parquet files and tell the driver which; the driver adds all files of a batch to the table in one
commit that carries the query's and the batch's id. A batch that is repeated after a crash finds its id there.
"""
