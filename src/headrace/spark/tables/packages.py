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
    """The module; MissingPackage says what to install if its package is not there."""
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in _EXTRAS:
            raise MissingPackage(error.name.partition(".")[0], wanted_for) from None
        raise
    finally:
        assert package in _EXTRAS, package
