"""Requests that only our brokers and gateways send: metadata updates, stepping down, seeds, metrics.

They are messages like Kafka's, with API keys that Kafka does not use, and are not listed in ApiVersions.
Their versions are negotiated, so that brokers of two versions work together (decision 0030).

`replication.controller`, `broker` and `gateway` import this package. Begin with `update_metadata.py`.
"""
