"""Kafka's wire protocol: bytes to messages and back. Knows no other package of ours.

`frame.py`, `headers.py` and `api.py` lead from a connection's bytes to a message; `message.py` and
`fields.py` declare messages, `schema` has all of Kafka's, generated from its own definitions, and
`compiled` turns a declaration into code. Produce and Fetch have codecs written by hand.
`batch.py`, `records.py`, `record_walk.py` and `compression.py` are record batches. `errors.py` and `ids.py`
are used everywhere.

Every package may import it. Begin with `batch.py`, or `schema/heartbeat.py`.
"""
