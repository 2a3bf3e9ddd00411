"""One file per API: the head says what it does here, version by version; a function translates and delegates.

A handler has no state and opens no file. It turns the request into calls of the domain, and results and
errors into the response. `requests/dispatch.py` finds handlers in a table that `@handles` fills, and
ApiVersions and docs/apis.md read the same table.

Nothing imports this package but the dispatcher, which loads all of it. Begin with `heartbeat.py`, then
`offset_commit.py` and `produce.py`.
"""
