"""The optional parts of the package: what each of them needs, and the sentence that says how to install it.

`pip install headrace` brings what brokers, the command line and the SDK need. Everything else is an extra,
whose packages are looked for before a command starts anything, not imported in the middle of it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Final, NamedTuple


class Extra(NamedTuple):
    """An extra of pyproject.toml: its name, what it is for, and a module of each package that it brings."""

    name: str
    brings: str
    modules: tuple[str, ...]

    @property
    def command(self) -> str:
        return f"pip install 'headrace[{self.name}]'"


CRYPTOGRAPHY: Final = Extra("security", "cryptography", ("cryptography",))
SECURITY: Final = Extra("security", "cryptography", ("cryptography", "joserfc"))
SERIALIZERS: Final = Extra(
    "http",
    "the packages of schema formats",
    ("attrs", "authlib", "fastavro", "google.protobuf", "jsonschema"),
)
HTTP: Final = Extra(
    "http",
    "the packages of gateway and schema registry",
    (
        *("cel", "fastapi", "grpc_tools", "httptools", "jinja2", "jsonschema_rs"),
        *("prometheus_client", "uvicorn"),
        *SECURITY.modules,
        *SERIALIZERS.modules,
    ),
)
SPARK: Final = Extra(
    "spark",
    "Spark",
    ("deltalake", "numba", "obstore", "packaging", "pandas", "pyarrow", "pyspark", "rich", *HTTP.modules),
)
ICEBERG: Final = Extra("iceberg", "Iceberg", ("pyiceberg",))
OTEL: Final = Extra("otel", "OpenTelemetry", ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"))
ARROW: Final = Extra("arrow", "Arrow", ("numba", "pyarrow"))
POLARS: Final = Extra("polars", "Polars", ("polars", *ARROW.modules))
SQL: Final = Extra("sql", "DuckDB", ("duckdb", "pytz", *ARROW.modules))
EXTRAS: Final = {each.name: each for each in (ARROW, HTTP, ICEBERG, OTEL, POLARS, SECURITY, SPARK, SQL)}


class MissingExtra(ImportError):
    """Packages of an extra are not installed; the message says what needs them, and how to install them."""

    def __init__(self, wanted_for: str, extra: Extra) -> None:
        super().__init__(f"{wanted_for} needs {extra.brings}: {extra.command}")
        self.extra = extra


def is_installed(extra: Extra) -> bool:
    """Return whether every package of the extra can be imported, without importing any."""
    return all(map(_exists, extra.modules))


def require(extra: Extra, wanted_for: str) -> None:
    """Raise MissingExtra unless the extra is installed; `wanted_for` is the subject of its sentence."""
    if not is_installed(extra):
        raise MissingExtra(wanted_for, extra)


@contextmanager
def importing(extra: Extra, wanted_for: str) -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails because the extra is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if is_installed(extra):  # then something else is missing
            raise
        raise MissingExtra(wanted_for, extra) from error


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that the module is in
        return False
