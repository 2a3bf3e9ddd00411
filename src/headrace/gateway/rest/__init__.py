"""Produce and consume over HTTP: the API of Confluent's REST proxy, v2 and v3.

`v2_*.py` and `v3_*.py` have the routes, `instances.py` and `instance.py` the consumers of v2, `delivery.py`
and `hub.py` share producers among requests, `validation.py` checks records against schemas.

Begin with `v3_produce.py`.
"""
