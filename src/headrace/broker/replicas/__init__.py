"""The replicas of this broker: partitions that it leads or follows, and the work on their logs.

`replicas.py` creates, changes and deletes them as the controller says. `partition.py` is one replica: its
log, its role and its high watermark. Followers are in `fetcher.py`, delayed requests in `purgatory.py`, ISR
changes in `isr_changes.py`. `housekeeping.py` runs retention, compaction, flushes and checkpoints;
`repairs.py` and `scrub.py` find and mend damaged segments; `seeding.py` begins a replica with files of the
same machine.

The layers above (schemas, membership, coordinators, records) import this package. Begin with
`partition.py`.
"""
