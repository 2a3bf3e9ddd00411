"""Brokers and partitions of a cluster: their state, and how operators change it.

`reading.py` reads brokers and partitions, `status.py` summarises them (pure). `moves.py`, `balance.py`,
`drain.py` and `balance.py` plan moves of replicas; `cluster.py` offers all of this as one class.

`headrace cluster`, the console and `doctor` import it. Begin with `cluster.py`.
"""
