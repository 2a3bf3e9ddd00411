"""ZooKeeper: the one place where brokers keep what they share.

`session.py` is a session on kazoo, with the errors of `errors.py`; `znodes.py` are the paths and contents
of znodes, Kafka's own where Kafka has them (docs/formats.md). `client_security.py` and `znode_acls.py`
secure them. `embedded` is a coordinator of one node that speaks ZooKeeper's protocol; `zookeeper.py` runs
Apache ZooKeeper itself.

`replication.controller`, `broker` and `cli` import this package. Begin with `znodes.py`, then `session.py`.
"""
