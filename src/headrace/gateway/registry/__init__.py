"""The schema registry's REST API, as Confluent's registry has it, on the topic `_schemas`.

`subjects.py`, `schemas.py` and `rules.py` have the routes, `registry.py` the operations with their retries,
`store.py` the state, read from `_schemas` to its end. What may follow what is decided in
`headrace.registry`.

Begin with `subjects.py` and follow a registration.
"""
