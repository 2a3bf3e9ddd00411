"""Packages that only those need who write tables: imported on first use, missed with a sentence."""

from importlib import import_module
from types import ModuleType
from typing import Final

from headrace.spark.errors import SparkError

_EXTRAS: Final = {"deltalake": "spark", "pyarrow": "spark", "pyiceberg": "iceberg"}


class MissingPackage(SparkError):
    """A package that the format needs is not installed."""

    def __init__(self, package: str, wanted_for: str) -> None:
        super().__init__(
            f"{wanted_for} needs the package {package}, which is not installed where Spark runs Python: "
            f"pip install 'headrace[{_EXTRAS[package]}]'"
        )


def needed(module: str, wanted_for: str) -> ModuleType:
    """The module; MissingPackage says what to install if its package, or one that it needs, is not there."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _EXTRAS:
            raise MissingPackage(missing, wanted_for) from None
        raise
