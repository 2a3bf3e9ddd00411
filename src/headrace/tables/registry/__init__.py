"""Records in the wire format of a schema registry as typed Arrow columns: Avro, JSON Schema, Protobuf.

`batches.py` groups records by schema and decodes them, `client.py` reads schemas, `shapes.py` says which
columns a schema has; each format has its shapes and its reader. A value is exact, or an error says why
(`exact.py`).

`tables/arrow` and `pipeline` import it. Begin with `batches.py`.
"""
