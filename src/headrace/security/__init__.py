"""Who sends a request, over which listener, and what that principal may do.

`principals.py` and `listeners.py` are the types. `authorization.py` has operations and resources,
`acls.py`, `acl_index.py` and `acl_authorizer.py` the decisions. `sasl` has the mechanisms, `quota` the
quotas of clients. `tls.py`, `stores.py`, `pem.py` and `certificates.py` read keys and certificates, the
only files touched here. `expressions.py` runs regular expressions of strangers in linear time.

`coordination`, `broker`, `client`, `gateway` and `cli` import it. Begin with `authorization.py`.
"""
