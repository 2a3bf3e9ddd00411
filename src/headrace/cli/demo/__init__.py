"""`headrace demo`: a cluster, a fleet of trucks and a Spark pipeline; a broker dies, and nothing is lost."""

from headrace.cli.demo.command import demo

__all__ = ["demo"]
