"""The clients of a cluster, which reach it over the wire only."""
