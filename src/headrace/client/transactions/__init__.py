"""Transactions of a cluster, for operators: list and describe them, and the producers of a partition.

`admin.py` sends the requests, `transaction.py` says what their responses mean. `headrace.Admin`, the command
`headrace txn` and the gateway import it. Kafka's kafka-transactions.sh finds and aborts those that hang.
"""
