"""Topics as Arrow columns: fetches of ranges, and compiled decoding of record batches.

`cluster.py` asks brokers for offsets and leaders, `fetcher.py` fetches a range with read-ahead,
`columns.py` decompresses batches and fills columns with the compiled loops of `walk.py`. `offsets.py`,
`tasks.py` and `narrowing.py` split and shorten ranges (pure).

`tables/arrow`, `spark` and `pipeline` import it. Begin with `reading.py`.
"""
