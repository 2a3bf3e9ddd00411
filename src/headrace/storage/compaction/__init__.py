"""Log compaction: planned on the log's own thread, copied elsewhere, installed on the log's own thread.

`cleaner.py` plans and installs, `filter.py` decides record by record what is kept (pure), `process.py` is
the process that reads and writes, `task.py` its messages, and `swap.py` replaces segments so that a crash
loses neither (decisions 0004 and 0027).

`broker/replicas/housekeeping.py` runs it. Begin with `cleaner.py`.
"""
