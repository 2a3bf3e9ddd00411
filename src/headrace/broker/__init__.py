"""The broker: the shell around the pure packages, with sockets, files, a clock and a ZooKeeper session.

`server.py` builds the components in the order of their dependencies, starts them, and stops them in the
reverse order. `services.py` is what handlers may use of them. A request passes `requests` (connection,
dispatch), a function in `handlers`, `records` (append and read) and `replicas` (partition, fetcher), and
from there the package `headrace.storage`. Groups and transactions pass `coordinators` instead.

The subpackages are layers: a contract in pyproject.toml names their order. Only `cli` and `testing` import
this package; clients reach a broker over the wire. Begin with `requests/connection.py` and follow a
Produce, as docs/architecture.md does.
"""
