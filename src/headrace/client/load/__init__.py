"""Load on a cluster, and what it took."""
