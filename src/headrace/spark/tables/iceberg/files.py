"""Files of an Iceberg table: their location, the ids of their columns, their manifest entries, their rows.

A column is found by its id, so it may have another name in an older file, or a narrower type, or be missing.
We write and read the files ourselves, because for pyiceberg 0.12 null lists and maps of structs are empty.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg import types as iceberg

from headrace.spark.tables.files import FIELD_ID, read_rows
from headrace.spark.tables.iceberg.table import WHAT
from headrace.spark.tables.packages import needed
from headrace.spark.tables.schema import UnfitTable

if TYPE_CHECKING:
    import pyarrow.fs
    from pyiceberg.manifest import DataFile as ManifestEntry
    from pyiceberg.table import Table

    from headrace.spark.tables.iceberg.sink import IcebergFile

_PROMOTIONS: Final = ((iceberg.IntegerType, iceberg.LongType), (iceberg.FloatType, iceberg.DoubleType))


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
    ids = {field.field_id for field in table.schema().fields}
    for file in files:
        for column in file.file.footer.schema.to_arrow_schema():
            if int(column.metadata[FIELD_ID]) not in ids:
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


def is_readable(table: "Table", filesystem: "pa.fs.FileSystem", path: str) -> bool:
    """Return whether `rows` can read a file."""
    found = _columns(filesystem, path)
    if found is None:  # a file of another program, without ids
        return False
    for field in table.schema().fields:
        stored = found.get(field.field_id)
        if stored is None:
            if field.required or field.initial_default is not None:
                return False
        elif not _is_wider(field.field_type, stored.field_type):
            return False
    return True


def rows(table: "Table", filesystem: "pa.fs.FileSystem", path: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a file with the columns of the table."""
    fields = table.schema().fields
    schema = file_schema(table, [field.name for field in fields])
    return read_rows(filesystem, path, schema, {field.name: field.field_id for field in fields})


def _columns(filesystem: "pa.fs.FileSystem", path: str) -> dict[int, iceberg.NestedField] | None:
    """Return the columns of a file by their ids, None if they have none."""
    schema = pq.read_schema(path, filesystem=filesystem)
    try:
        found = needed("pyiceberg.io.pyarrow", WHAT).pyarrow_to_schema(schema)
    except ValueError:
        return None
    return {field.field_id: field for field in found.fields}


def _is_wider(kind: iceberg.IcebergType, stored: iceberg.IcebergType) -> bool:
    """Return whether values of a file can be cast to the table's type."""
    if isinstance(kind, iceberg.StructType) and isinstance(stored, iceberg.StructType):
        return _is_wider_struct(kind, stored)
    if isinstance(kind, iceberg.ListType) and isinstance(stored, iceberg.ListType):
        return kind.element_id == stored.element_id and _is_wider(kind.element_type, stored.element_type)
    if isinstance(kind, iceberg.MapType) and isinstance(stored, iceberg.MapType):
        if (kind.key_id, kind.value_id) != (stored.key_id, stored.value_id):
            return False
        return _is_wider(kind.key_type, stored.key_type) and _is_wider(kind.value_type, stored.value_type)
    if isinstance(kind, iceberg.DecimalType) and isinstance(stored, iceberg.DecimalType):
        return kind.scale == stored.scale and kind.precision >= stored.precision
    return kind == stored or (type(stored), type(kind)) in _PROMOTIONS


def _is_wider_struct(kind: iceberg.StructType, stored: iceberg.StructType) -> bool:
    """Return whether fields with the same names have the same ids: structs are cast by names."""
    known: dict[str, Any] = {column.name: column for column in stored.fields}
    ids = {column.field_id for column in stored.fields}
    for field in kind.fields:
        found = known.get(field.name)
        if found is None:
            if field.required or field.field_id in ids or field.initial_default is not None:
                return False
        elif found.field_id != field.field_id or not _is_wider(field.field_type, found.field_type):
            return False
    return True
