"""Files of an Iceberg table: their location, the ids of their columns, their entries in a manifest.

We write the files ourselves, because pyiceberg 0.12 writes null lists and maps of structs as empty ones.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from headrace.spark.tables.iceberg.table import WHAT
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.fs
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table

    from headrace.spark.tables.iceberg.sink import IcebergFile

_FIELD_ID: Final = b"PARQUET:field_id"


def data_location(table: "Table") -> str:
    """Return the URL of the directory of the table's files."""
    return table.properties.get("write.data.path", f"{table.location()}/data").rstrip("/")


def data_filesystem(table: "Table") -> "pa.fs.FileSystem":
    """Return the directory of the table's files, which can be pickled for tasks."""
    files = needed("pyiceberg.io.pyarrow", WHAT).PyArrowFileIO(dict(table.io.properties))
    scheme, host, path = files.parse_location(data_location(table))
    filesystem: Any = files.fs_by_scheme(scheme, host)
    if scheme == "file":
        filesystem.create_dir(path, recursive=True)
    return needed("pyarrow.fs", WHAT).SubTreeFileSystem(path, filesystem)


def file_schema(table: "Table", columns: Iterable[str]) -> "pa.Schema":
    """Return the schema of a file with these columns, with the ids by which Iceberg finds them."""
    return needed("pyiceberg.io.pyarrow", WHAT).schema_to_pyarrow(table.schema().select(*columns))


def check_columns(table: "Table", files: Sequence["IcebergFile"]) -> None:
    """Raise UnfitTable if the table no longer has a column of the files, by its id.

    It may have been dropped, and added again with another id: then readers would not find its values.
    """
    ids = {each.field_id for each in table.schema().fields}
    for each in files:
        for column in each.file.footer.schema.to_arrow_schema():
            if int(column.metadata[_FIELD_ID]) not in ids:
                raise UnfitTable(
                    f"column {column.name!r} has been dropped from the table while the batch was written: "
                    "restart the query, which repeats the batch"
                )


def described(table: "Table", files: Sequence["IcebergFile"]) -> "list[ManifestEntry]":
    """Return the manifest entries of the files, with partitions, rows, sizes and bounds."""
    io, manifest = needed("pyiceberg.io.pyarrow", WHAT), needed("pyiceberg.manifest", WHAT)
    wanted = io.compute_statistics_plan(table.schema(), table.properties)
    ids = io.parquet_path_to_id_mapping(table.schema())
    entries: list[ManifestEntry] = []
    for written in files:
        statistics = io.data_file_statistics_from_parquet_metadata(
            parquet_metadata=written.file.footer, stats_columns=wanted, parquet_column_mapping=ids
        )
        entry = manifest.DataFile.from_args(
            content=manifest.DataFileContent.DATA,
            file_path=f"{data_location(table)}/{written.file.path}",
            file_format=manifest.FileFormat.PARQUET,
            partition=needed("pyiceberg.typedef", WHAT).Record(*written.file.partition.values()),
            file_size_in_bytes=written.file.size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        entry.spec_id = written.spec_id
        entries.append(entry)
    return entries
