"""Files of an Iceberg table: where they are, which ids their columns have, what a manifest says of them.

We write them ourselves, for pyiceberg 0.12 makes empty ones of lists and maps of structs that are null.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from headrace.spark.tables.iceberg_table import WHAT
from headrace.spark.tables.packages import needed

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table

    from headrace.spark.tables.files import DataFile


def data_location(table: "Table") -> str:
    """The directory of the table's files, as a URL."""
    return table.properties.get("write.data.path", f"{table.location()}/data").rstrip("/")


def data_filesystem(table: "Table") -> "pa.fs.FileSystem":
    """That directory, to write and remove files in; it can be sent to a task."""
    files = needed("pyiceberg.io.pyarrow", WHAT).PyArrowFileIO(dict(table.io.properties))
    scheme, host, path = files.parse_location(data_location(table))
    filesystem: Any = files.fs_by_scheme(scheme, host)
    if scheme == "file":
        filesystem.create_dir(path, recursive=True)
    return needed("pyarrow.fs", WHAT).SubTreeFileSystem(path, filesystem)


def file_schema(table: "Table", columns: Iterable[str]) -> "pa.Schema":
    """The schema of a file with these columns: Iceberg finds them by the ids in it, not by their names."""
    return needed("pyiceberg.io.pyarrow", WHAT).schema_to_pyarrow(table.schema().select(*columns))


def described(table: "Table", files: Sequence["DataFile"]) -> "list[ManifestEntry]":
    """What the table's manifest says of the files: rows, sizes, bounds."""
    io, manifest = needed("pyiceberg.io.pyarrow", WHAT), needed("pyiceberg.manifest", WHAT)
    wanted = io.compute_statistics_plan(table.schema(), table.properties)
    ids = io.parquet_path_to_id_mapping(table.schema())
    return [
        manifest.DataFile.from_args(
            content=manifest.DataFileContent.DATA,
            file_path=f"{data_location(table)}/{each.path}",
            file_format=manifest.FileFormat.PARQUET,
            partition=needed("pyiceberg.typedef", WHAT).Record(),
            file_size_in_bytes=each.size,
            sort_order_id=None,
            spec_id=table.spec().spec_id,
            equality_ids=None,
            key_metadata=None,
            **io.data_file_statistics_from_parquet_metadata(
                parquet_metadata=each.footer, stats_columns=wanted, parquet_column_mapping=ids
            ).to_serialized_dict(),
        )
        for each in files
    ]
