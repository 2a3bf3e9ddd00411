"""The wire client: connections to brokers, requests and their retries, and which broker gets them.

`connection.py` is one connection, `pool.py` several, `brokers.py` the cluster: metadata, leaders,
coordinators and the controller. `retry.py` repeats what is retriable. `connection_settings.py`,
`security.py`, `tls.py`, `sasl.py` and `oauth.py` read Kafka's client settings; `librdkafka.py` translates
them for librdkafka.

Every other package of clients imports it. Begin with `brokers.py`.
"""
