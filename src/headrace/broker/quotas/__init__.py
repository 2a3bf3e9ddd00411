"""Client quotas on this broker: what each client has used, and how long it has to wait.

`throttling.py` follows one request from its arrival to its response, `client_quotas.py` keeps the rates of
users and client ids, and `connection_rates.py` those of new connections. Which quota applies to a client is
decided in `headrace.security.quota`, which is pure.

`requests` charges requests here. Begin with `throttling.py`.
"""
