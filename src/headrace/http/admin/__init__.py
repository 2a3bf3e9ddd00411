"""Our own JSON about a cluster and its topics and groups, under /api/v1."""
