"""The HTTP gateway: REST proxy, schema registry, admin API, metrics and console in one ASGI application.

`app.py` puts the parts together, `serving.py` runs it as a process, `connections.py` bounds its
connections, `guard.py` and `users` decide who sends a request, `clients.py` and `clusters.py` hold the
clients that act for a user. `problems.py` turns errors into responses, in one place. Each part has a
package.

It uses a cluster over the wire, as any client. Only `cli` imports it. Begin with `app.py`.
"""
