"""Client quotas: which quota applies to a client, and how long the client is throttled. Pure: no clock.

`entities.py` names users, client ids and addresses, `table.py` finds the quota that applies, `rate.py` and
`token_bucket.py` measure, `shares.py` divides a machine's quota among its brokers.

`broker/quotas` imports it. Begin with `table.py`.
"""
