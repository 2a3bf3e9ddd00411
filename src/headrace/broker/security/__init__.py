"""Authentication, authorization and TLS of a broker, by its settings and by what ZooKeeper stores.

`authentication.py` has the SASL mechanisms of each listener, `tls.py` the TLS contexts, `acl_store.py` and
`token_store.py` the cluster's ACLs and delegation tokens, `audit.py` the log of denied requests. The rules
are in `headrace.security`, which is pure.

`services.py`, `requests` and `server.py` import this package. Begin with `authentication.py`.
"""
