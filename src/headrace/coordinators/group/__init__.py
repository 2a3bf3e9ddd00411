"""The group coordinator of a partition of `__consumer_offsets`: members, assignments, offsets. Pure.

`coordinator.py` takes requests and returns decisions. `classic.py` and `classic_protocol.py` are a classic
group, `consumer.py` and `consumer_protocol.py` a group of KIP-848; `migration.py` converts between them.
`offsets.py` has the committed offsets, `records.py` Kafka's formats of all records, `assignors` the
server-side assignment.

`broker/coordinators/groups.py` runs it. Begin with `coordinator.py`.
"""
