"""A ZooKeeper server of one node: the same protocol, one process, a durable log.

The path of a write: `connection` splits frames, `requests` decodes, `decide` validates the request and makes
a transaction, `state` applies it and reports the triggered watches, `commit` syncs all concurrent
transactions with one fsync, and only then `connection` sends events and reply. `journal` replays the same
transactions at start.
"""
