"""Headrace: a distributed, replicated commit log that any Kafka client can use."""

__version__ = "0.1.0.dev0"
