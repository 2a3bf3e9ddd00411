"""Appending and reading records for clients: what lies between a handler and a partition.

`appends.py` appends a batch: transactions are verified, records inspected, the lease checked.
`reads.py` reads the partitions of a Fetch: for consumers, for followers, and from a cold disk.
`inspections.py` reads the records of a batch in threads, for topics that require it.
`fetch_sessions.py` remembers the partitions of incremental fetches (KIP-227).

The handlers of Produce and Fetch import this package; the partitions themselves are in `replicas`.
"""
