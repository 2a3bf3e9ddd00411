"""Who sends a request to the gateway: credentials, sessions, and the clients that act for each user.

`authentication.py` reads the credentials of a request, `verification.py` asks the brokers whether they are
right, `pool.py` keeps the clients of each user, `delegation.py` turns certificates into delegation tokens.

`gateway/guard.py` calls this package before any route. Begin with `authentication.py`.
"""
