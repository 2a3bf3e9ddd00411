"""One view per page: what it asks the cluster, and what it hands to its template."""
