"""A real broker, or a cluster, for tests: in the process of the test, or as processes of its own.

    from headrace.testing import Broker

    with Broker() as broker:
        Producer({"bootstrap.servers": broker.bootstrap})

docs/testing.md has recipes. Nothing else in the package imports this one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from headrace.testing.brokers import Broker
    from headrace.testing.cluster import Cluster
    from headrace.testing.faults import Fault, Faults

__all__ = ["Broker", "Cluster", "Fault", "Faults"]

_HOMES: Final = {"Broker": "brokers", "Cluster": "cluster", "Fault": "faults", "Faults": "faults"}


def __getattr__(name: str) -> Any:
    """Import a name on its first use: pytest loads this package in every run on the machine."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
