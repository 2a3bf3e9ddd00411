"""Brokers and partitions: their state, and how it is changed."""
