"""`headrace.Producer`: serialisation, partitioning, delivery reports and transactions, on librdkafka.

`producer.py` is the class that users see. `partitioning.py` chooses the partition of a record, `gate.py`
and `flight.py` bound what is in flight, `delivery.py` reports the outcome, `transactions.py` adds
exactly-once.

Begin with `producer.py`.
"""
