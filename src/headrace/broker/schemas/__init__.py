"""Schema validation of produced records, and the copy of the schemas in ZooKeeper.

`validation.py` checks the schema ids of a batch, `view.py` reads `_schemas` on demand, and `mirror.py`
writes its state to ZooKeeper on the broker that leads it. What a valid record is, `headrace.registry`
decides.

`records/inspections.py` and `server.py` import this package. Begin with `validation.py`.
"""
