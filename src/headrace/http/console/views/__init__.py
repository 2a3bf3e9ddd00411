"""One view per page: it reads the cluster, and renders its template."""
