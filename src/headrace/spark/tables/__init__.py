"""Delta and Iceberg tables as targets of streams and DataFrames, exactly once and without a jar.

Tasks write Parquet files and report them to the driver, which adds all files of a batch to the table in one
commit with the ids of the query and the batch. A batch that is repeated after a crash finds its id there.
"""
