"""Delta tables as targets, through the package deltalake: appends, maintenance, compaction.

`sink.py` is the data source, `table.py` a table and its commits, `log.py` reads the transaction log,
`compaction.py` and `maintenance.py` rewrite and remove files beside other writers (decision 0015).
"""
