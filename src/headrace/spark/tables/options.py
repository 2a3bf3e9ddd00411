"""The options of the table formats."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.option_values import Options

TARGET_FILE_BYTES: Final = 128 << 20
COMPACT_EVERY: Final = 50
_ONE_SLASH: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")
_STORAGE: Final = "storage."
_CATALOG: Final = "catalog."
_DEFAULT_CATALOG: Final = "default"  # of pyiceberg
_SPARKS_OWN: Final = ("checkpointLocation", "queryName", "path")
_APPLICATION: Final = ("txnAppId", "txnVersion")
_DELTA: Final = ("partitionBy", "compactEvery", "targetFileBytes", *_APPLICATION)
_ICEBERG: Final = ("table", "compactEvery", "targetFileBytes", *_APPLICATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOptions:
    """`path` and `storage` are passed to deltalake; a local path is made absolute.

    compact_every: batches of a query between compactions; 0 is never. By default only tables in a local
    directory
        are compacted: elsewhere we cannot fence concurrent compactions.
    target_file_bytes: the approximate size at which files are closed, and to which small ones are merged.
    """

    path: str
    storage: Mapping[str, str] = field(default_factory=dict)
    partition_by: tuple[str, ...] = ()
    compact_every: int = COMPACT_EVERY
    target_file_bytes: int = TARGET_FILE_BYTES

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "DeltaOptions":
        """Return the options that Spark passes; InvalidOption names an invalid one."""
        options = Options(given, _DELTA, prefix=_STORAGE, silent=_SPARKS_OWN)
        path = options.get("path")
        if not path:
            raise InvalidOption("path", "missing; expected a directory, or a URL such as s3://bucket/table")
        path = _absolute(path)
        return cls(
            path=path,
            storage=options.below(_STORAGE),
            partition_by=options.parsed("partitionBy", _names, ()),
            compact_every=options.integer(
                "compactEvery", COMPACT_EVERY if local_directory(path) else 0, least=0
            ),
            target_file_bytes=options.integer("targetFileBytes", TARGET_FILE_BYTES, least=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergOptions:
    """`catalog` is passed to pyiceberg, and overrides its own configuration of `catalog_name`.

    compact_every and target_file_bytes: as for Delta.
    """

    table: str
    catalog_name: str = _DEFAULT_CATALOG
    catalog: Mapping[str, str] = field(default_factory=dict)
    compact_every: int = COMPACT_EVERY
    target_file_bytes: int = TARGET_FILE_BYTES

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "IcebergOptions":
        """Return the options that Spark passes; InvalidOption names an invalid one."""
        options = Options(given, _ICEBERG, prefix=_CATALOG, silent=_SPARKS_OWN)
        table = (options.get("table") or "").strip()
        if "." not in table.strip("."):
            raise InvalidOption("table", f"{table!r} is not the name of a table; expected namespace.name")
        catalog = options.below(_CATALOG)
        return cls(
            table=table,
            catalog_name=catalog.pop("name", _DEFAULT_CATALOG),
            catalog=catalog,
            compact_every=options.integer("compactEvery", COMPACT_EVERY, least=0),
            target_file_bytes=options.integer("targetFileBytes", TARGET_FILE_BYTES, least=1),
        )


def identified_batch(given: Mapping[str, str]) -> Batch | None:
    """Return the identity of a batch write that may be repeated, from txnAppId and txnVersion; or None."""
    options = Options(given, _APPLICATION, prefix="")
    found = [name for name in _APPLICATION if name in options]
    if not found:
        return None
    application = (options.get("txnAppId") or "").strip()
    if not application or len(found) == 1:
        raise InvalidOption("txnAppId", "txnAppId and txnVersion identify a write together: set both")
    return Batch(application, options.integer("txnVersion", 0, least=0))


def local_directory(path: str) -> Path | None:
    """Return the table's directory if it is local, where files can be created exclusively; else None."""
    if "://" not in path:
        return Path(path)
    url = urlsplit(path)
    return Path(url2pathname(url.path)) if url.scheme == "file" and not url.netloc else None


def _names(text: str) -> tuple[str, ...]:
    found = tuple(name.strip() for name in text.split(","))
    if found == ("",):
        return ()
    if "" in found or len(set(found)) < len(found):
        raise ValueError(f"{','.join(found)!r} is not a list of different columns; expected a,b")
    return found


def _absolute(path: str) -> str:
    """Return the path as deltalake and every task understand it; InvalidOption for a malformed URL."""
    scheme = _ONE_SLASH.match(path)
    if scheme is not None and scheme[1].lower() == "file":
        return f"file://{path[len(scheme[0]) - 1 :]}"  # Hadoop's way to write file:///
    if scheme is not None:
        raise InvalidOption("path", f"{path}: a URL has two slashes, as in {scheme[1]}://bucket/table")
    # A path is relative to the working directory of the driver; tasks may have another one.
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100  Path resolves no ".."
