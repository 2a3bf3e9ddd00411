"""Who sends a request to the gateway: credentials, sessions, and the clients that act for each user.

`authentication.py` reads the credentials of a request, `logins.py` asks the brokers whether they are
right, and turns certificates into delegation tokens, `pool.py` keeps the clients of each user.

`gateway/guard.py` calls this package before any route. Begin with `authentication.py`.
"""
