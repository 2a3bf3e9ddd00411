"""The gateway's own JSON API under /api/v1: cluster, brokers, topics, messages and groups."""
