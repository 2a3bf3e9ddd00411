"""Avro schemas: parsing, canonical text, and compatibility by Avro's resolution rules. Pure.

`avro.py` is the format as `registry/formats/parse.py` knows it; `parser.py` builds the types of `types.py`,
`writer.py` prints them, `compatibility.py` compares two of them.
"""
