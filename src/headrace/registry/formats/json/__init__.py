"""JSON Schema: references, keywords, and compatibility as Confluent's registry decides it. Pure.

`schema.py` is the format as `registry/formats/parse.py` knows it; `resources.py` resolves references,
`shapes.py` and `keywords.py` read schemas, `compatibility.py` with `objects.py`, `arrays.py` and
`bounds.py` compares them.
"""
