"""The gateway's own JSON API under /api/v1: cluster, brokers, topics, messages, groups, users, ACLs, quotas.

One file per subject: routes with typed bodies that call `headrace.client`. The console draws the same
objects. `search.py` and `tail.py` stream messages. Begin with `topics.py`.
"""
