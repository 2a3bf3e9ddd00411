"""A ZooKeeper of one node: the same protocol, one process, a durable log.

The path of a write: `connection` cuts the frame, `requests` decodes it, `decide` turns it into a
transaction or refuses it, `state` applies that and says which watches it touches, `commit` shares one fsync
among all that came in meanwhile, and only then `connection` lets events and reply go. `journal` replays the
same transactions at start.
"""
