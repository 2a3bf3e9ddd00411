"""Records one by one, for tools: writing, reading a range, following a topic, searching backwards.

`one_by_one.py` reads and writes through the wire client, `following.py` waits for new records,
`scanning.py` and `scanning_back.py` search. `headrace consume` and `produce`, the console and the REST
proxy import it.
"""
