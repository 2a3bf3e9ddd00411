"""The transaction coordinator of one partition of `__transaction_state`. Pure.

`state.py` is a transaction with its legal transitions, `coordinator.py` the decisions: producer ids and
epochs, partitions, prepare and complete. `records.py` has Kafka's formats.

`broker/coordinators/transactions.py` runs it and writes the markers. Begin with `state.py`.
"""
