"""Coordinators on this broker: state machines over partitions of internal topics that it leads.

`runtime.py` finds the partition of a key and runs one `shard.py` for each partition: it loads the log,
appends the records of a decision, applies them, and answers once they are committed. `groups.py` and
`transactions.py` are its users; the decisions themselves are in `headrace.coordinators`.

Handlers of group and transaction APIs import this package. Begin with `shard.py`.
"""
