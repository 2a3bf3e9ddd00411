"""One partition on disk, in Apache Kafka's own file formats. Blocking code without asyncio.

`log.py` is a partition's log: it appends, truncates and deletes; `log_files.py` has its segments,
`log_reads.py` its reads. `segments.py` is the sequence of its segments, and knows their offsets;
`segment.py` is one segment with its indexes (`index.py`, `txn_index.py`), and knows where its bytes are.
`append` checks what is appended, `producers` finds duplicates, `compaction` rewrites, `recovery.py` opens a
log, and `checks` finds and repairs damage. `directory.py` is a broker's log directory. The bytes are in
docs/formats.md.

The broker picks the thread and hands in the clock. Begin with `log.py`, then `segment.py`.
"""
