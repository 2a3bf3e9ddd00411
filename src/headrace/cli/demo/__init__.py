"""`headrace demo`: a cluster, a fleet of trucks and a Spark pipeline survive the death of a broker."""

from headrace.cli.demo.command import demo

__all__ = ["demo"]
