"""SASL: one exchange of messages for each mechanism. Pure.

`exchange.py` is the interface, `session.py` the state of a connection; PLAIN, SCRAM, OAUTHBEARER and the
DIGEST-MD5 of ZooKeeper have a file each, with the clients' sides; `jaas.py` reads Kafka's
login settings.

`broker/security`, `coordination` and `client/wire` import it. Begin with `exchange.py`.
"""
