"""Connections from this broker to the other brokers of its cluster.

`peer.py` sends requests and matches responses, and learns which versions the other broker supports;
`authentication.py` is how this broker says who it is. Requests are sent in the highest version that both
sides know, so that brokers of two versions work together during an upgrade.

Fetchers, ISR changes, controller requests and transaction markers use this package. Begin with `peer.py`.
"""
