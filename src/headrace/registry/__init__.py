"""The schema registry's rules: schemas, their versions, and which schema may follow which. Pure.

`state.py` is the registry's state, built from the records of `_schemas` (`records.py`, `record_json.py`).
`registration.py`, `deletion.py` and `configuration.py` decide changes; `formats` parses and compares Avro,
JSON Schema and Protobuf; `schema_ids.py` and `validation.py` check the ids in records.

`gateway/registry` serves it, brokers validate with it, and `client` and `tables` decode with its formats.
Begin with `registration.py`.
"""
