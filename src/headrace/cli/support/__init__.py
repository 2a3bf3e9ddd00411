"""What commands share: the session with a cluster, output, profiles, and server processes.

`session.py` has the options that every command knows and the clients that commands use. `output.py`
and `tables.py` decide how results look; `formats.py` and `record_schemas.py` how records do.
`process.py` runs a server in the foreground or as a daemon.

Only commands import this package. Begin with `session.py`.
"""
