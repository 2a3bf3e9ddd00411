"""Client quotas: which quota applies to a client, and how long the client is throttled. Pure: no clock.

`entities.py` names users, client ids and addresses, `table.py` finds the quota that applies and divides it
among the brokers of a machine, `rate.py` measures.

`broker/quotas` imports it. Begin with `table.py`.
"""
