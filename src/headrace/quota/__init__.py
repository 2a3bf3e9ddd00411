"""Client quotas: which quota applies to a client, and how long the client is throttled. Pure: no clock."""
