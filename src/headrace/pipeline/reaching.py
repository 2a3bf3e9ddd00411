"""Can a sink be written to? Directories and tables are looked at, and nothing is made or changed."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

from headrace.pipeline.errors import PipelineError
from headrace.spark.tables.options import DeltaOptions, IcebergOptions
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import check_partitioning, storable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_FITS: Final = "is there, and the columns fit"
_WILL: Final = "will be created"


def look_at_directory(path: Path) -> str:
    """What is to be said of it; OSError if files cannot be written there."""
    there = path
    while not there.exists():
        there = there.parent
    if not there.is_dir():
        raise NotADirectoryError(f"{there} is no directory")
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(f"{there} cannot be written to")
    return f"directory {path} {'is there' if path.exists() else _WILL}"


def look_at_delta(given: Mapping[str, str], schema: "StructType") -> str:
    """What is to be said of a Delta table; SparkError if rows of that schema cannot be written to it."""
    deltalake = needed("deltalake", "a Delta table")
    from headrace.spark.tables.delta_table import open_table  # noqa: PLC0415

    options = DeltaOptions.of(given)
    if "://" not in options.path:
        look_at_directory(Path(options.path))
    if deltalake.DeltaTable.is_deltatable(options.path, dict(options.storage)):
        open_table(options, schema)
        return f"Delta table {options.path} {_FITS}"
    check_partitioning(options.partition_by, storable(schema))
    return f"Delta table {options.path} {_WILL}"


def look_at_iceberg(given: Mapping[str, str], schema: "StructType") -> str:
    """The same of an Iceberg table, and of the catalog that has it."""
    catalogs = needed("pyiceberg.catalog", "an Iceberg table")
    from headrace.spark.tables.iceberg_table import open_table  # noqa: PLC0415

    options = IcebergOptions.of(given)
    try:
        is_there = catalogs.load_catalog(options.catalog_name, **options.catalog).table_exists(options.table)
    except Exception as error:  # catalogs are plugins, with errors of their own
        raise PipelineError(f"the catalog of {options.table} cannot be reached: {error}") from error
    if is_there:
        open_table(options, schema)
        return f"Iceberg table {options.table} {_FITS}"
    storable(schema)
    return f"Iceberg table {options.table} {_WILL}"
