"""Replication of a partition: the ISR, the high watermark, divergence and leader election.

`leader.py`, `follower.py`, `election.py` and `rate.py` are pure: no clock, no I/O. `controller` applies the
rules of elections to a whole cluster and writes the outcome to ZooKeeper.

`broker` imports this package. Begin with `leader.py`, then `election.py`.
"""
