"""A client's requests: one connection, the table of handlers, and what every request passes through.

`connection.py` splits the received bytes into requests, handles them in order and sends the responses in
the same order. `dispatch.py` has the table of handlers, the context of a request and its authorization;
`requirements.py` what each API requires of a principal. `envelopes.py` forwards requests to the controller.

`server.py` creates connections, and handlers import `dispatch`. Begin with `connection.py`.
"""
