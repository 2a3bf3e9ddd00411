"""What processes need of their machine: sockets, threads, child processes, installed packages.

`acceptor.py`, `tls_server.py`, `tls_alerts.py` and `line_limit.py` accept connections; `addresses.py` and
`ports.py` name and reserve them. `background.py` is the only kind of background thread, `parent_process.py`
ends a process with its parent, `java.py` finds a JVM, `system_calls.py` has what only Linux knows, with
fallbacks. `extras.py` says which optional packages a feature needs.

Every package but `protocol` may import it. Its files do not depend on each other: there is no place to
begin.
"""
