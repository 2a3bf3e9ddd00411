"""What keys and values are outside of the log: bytes, text, JSON, or a format of the schema registry.

`formats.py` has the plain ones, `registry.py` Avro, JSON Schema and Protobuf with the id of their schema in
front, `codecs` the encoding itself. Producer and Consumer import it. Begin with `formats.py`.
"""
