"""Transactions of a cluster, for operators: list, describe, find those that hang, and abort them.

`admin.py` has the operations, as `kafka-transactions.sh` has them; `transaction.py` writes records in one
transaction through the wire client. `headrace txn`, the console and Spark's exactly-once sink import it.
"""
