"""This broker as a member of its cluster: registration, lease, watches and the controller.

`registration.py` keeps the broker's znode, and `lease.py` says until when the broker may answer for
partitions. `cluster.py` watches the other brokers, configs and the controller in ZooKeeper. The broker runs
for controller in `controller_election.py`, and is a client of the controller in `controller_client.py`.
`exited_brokers.py` proves that a broker on the same machine has ended.

`security` and everything above it import this package. Begin with `registration.py`.
"""
