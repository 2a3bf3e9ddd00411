"""All connections of a broker together: their number, their memory, and their turns on the event loop.

`connections.py` bounds how many there are and what they buffer, `fair_queue.py` shares the event loop among
them by time, and `descriptors.py` divides the limit on open files between connections and logs.

A single connection is in `requests/connection.py`, the only reader of this package besides `services.py`
and `server.py`.
"""
