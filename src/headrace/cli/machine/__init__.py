"""A cluster on one machine: the processes of `headrace up` and of a node with several brokers.

`cluster.py` starts and supervises brokers, coordinator and gateway as processes (`process.py`,
`member.py`); `layout.py` names their directories and ports, `node.py` reads the settings of a machine with
several brokers, `secure.py` creates certificates for `--secure`, and `zookeeper_state.py` prepares ZooKeeper.

`cli/up.py` and `cli/broker.py` import this package. Begin with `cluster.py`.
"""
