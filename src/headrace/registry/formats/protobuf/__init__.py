"""Protobuf schemas: protoc's descriptors, canonical text, and compatibility. Pure but for protoc.

`protobuf.py` is the format as `registry/formats/parse.py` knows it; `protoc.py` runs the compiler with
limits, `text.py` with `fields.py`, `names.py` and `options.py` prints a schema, `compatibility.py` compares
two of them.
"""
