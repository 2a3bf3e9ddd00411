"""Optional packages that only tables need."""

from importlib import import_module
from types import ModuleType
from typing import Final

from headrace.spark.errors import SparkError

_EXTRAS: Final = {"deltalake": "spark", "pyarrow": "spark"} | dict.fromkeys(
    ("pyiceberg", "pyiceberg_core"), "iceberg"
)


class MissingPackage(SparkError):
    """A package that the format needs is not installed."""

    def __init__(self, package: str, wanted_for: str) -> None:
        super().__init__(
            f"{wanted_for} needs the package {package}, which is not installed where Spark runs Python: "
            f"pip install 'headrace[{_EXTRAS[package]}]'"
        )


def needed(module: str, wanted_for: str) -> ModuleType:
    """Import a module; MissingPackage says what to install if it, or one of its dependencies, is missing."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _EXTRAS:
            raise MissingPackage(missing, wanted_for) from None
        raise
