"""The options of the table formats."""

import os
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit
from urllib.request import url2pathname

from headrace.client.errors import WrongSetting
from headrace.client.wire.config_providers import resolve
from headrace.spark.batch import Batch
from headrace.spark.errors import InvalidOption
from headrace.spark.option_values import Options
from headrace.spark.tables.evolution import RULES, Rules
from headrace.spark.tables.partition_texts import split

TARGET_FILE_BYTES: Final = 128 << 20
COMPACT_EVERY: Final = 50
_NO_RULES: Final = Rules()
_ONE_SLASH: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/(?!/)")
_STORAGE: Final = "storage."
_CATALOG: Final = "catalog."
_DEFAULT_CATALOG: Final = "default"  # of pyiceberg
_SPARKS_OWN: Final = ("checkpointLocation", "queryName", "path")
_APPLICATION: Final = ("txnAppId", "txnVersion")
_DELTA: Final = ("partitionBy", "evolve", "compactEvery", "targetFileBytes", *_APPLICATION)
_ICEBERG: Final = ("table", "renameColumns", "dropColumns", *_DELTA)
_NOT_IN_DELTA: Final = dict.fromkeys(
    ("renamecolumns", "dropcolumns"),
    "a Delta table renames and drops columns only with column mapping, which deltalake cannot write; "
    'set evolve to "add" to add a column with its new name: the old one stays, and is null in new rows',
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What both formats have.

    partition_by: the partitioning of a new table; of an Iceberg table, as in ("day(at)", "bucket(16,id)").
    evolve: the changes of the table's schema that a DataFrame may cause.
    compact_every: batches of a query between compactions; 0 is never.
    target_file_bytes: the approximate size at which files are closed, and to which small ones are merged.
    """

    partition_by: tuple[str, ...] = ()
    evolve: Rules = _NO_RULES
    compact_every: int = COMPACT_EVERY
    target_file_bytes: int = TARGET_FILE_BYTES

    def requiring(self, columns: Collection[str]) -> Self:
        """Return the options of a table that has to have these columns if it exists."""
        return replace(self, evolve=replace(self.evolve, required=columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaOptions(TableOptions):
    """`path` and `storage` are passed to deltalake; a local path is made absolute.

    By default only tables in a local directory are compacted: elsewhere we cannot fence concurrent
    compactions. gives_way: whether a table is not compacted if another program has committed to it recently.
    """

    path: str
    given_storage: Mapping[str, str] = field(default_factory=dict, repr=False)  # may have secrets
    gives_way: bool = True

    @property
    def storage(self) -> dict[str, str]:
        """The storage options, with what references such as ${env:NAME} refer to in this process."""
        return _resolved(_STORAGE, self.given_storage)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> "DeltaOptions":
        """Return the options that Spark passes; InvalidOption names an invalid one."""
        options = Options(given, _DELTA, prefix=_STORAGE, silent=_SPARKS_OWN, refused=_NOT_IN_DELTA)
        path = options.get("path")
        if not path:
            raise InvalidOption("path", "missing; expected a directory, or a URL such as s3://bucket/table")
        path = _absolute(path)
        compact_every = COMPACT_EVERY if local_directory(path) else 0
        return cls(
            path=path,
            given_storage=options.below(_STORAGE),
            partition_by=options.parsed("partitionBy", _names, ()),
            evolve=_rules(options),
            compact_every=options.integer("compactEvery", compact_every, least=0),
            target_file_bytes=options.integer("targetFileBytes", TARGET_FILE_BYTES, least=1),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class IcebergOptions(TableOptions):
    """`catalog` is passed to pyiceberg, and overrides its own configuration of `catalog_name`."""

    table: str
    catalog_name: str = _DEFAULT_CATALOG
    given_catalog: Mapping[str, str] = field(default_factory=dict, repr=False)  # may have secrets

    @property
    def catalog(self) -> dict[str, str]:
        """The catalog's properties, with what references such as ${env:NAME} refer to in this process."""
        return _resolved(_CATALOG, self.given_catalog)

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
            given_catalog=catalog,
            partition_by=options.parsed("partitionBy", split, ()),
            evolve=_rules(options),
            compact_every=options.integer("compactEvery", COMPACT_EVERY, least=0),
            target_file_bytes=options.integer("targetFileBytes", TARGET_FILE_BYTES, least=1),
        )


def _resolved(prefix: str, given: Mapping[str, str]) -> dict[str, str]:
    try:
        return resolve(given)
    except WrongSetting as error:
        raise InvalidOption(prefix + error.setting, error.why) from None


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


def _rules(options: Options) -> Rules:
    words: tuple[str, ...] = options.parsed("evolve", lambda text: _names(text.lower()), ())
    if unknown := [word for word in words if word not in RULES]:
        raise options.wrong("evolve", f"{unknown[0]!r} is not one of {', '.join(RULES)}")
    return Rules(
        add="add" in words,
        widen="widen" in words,
        renames=options.parsed("renameColumns", _renames, {}),
        drops=options.parsed("dropColumns", _names, ()),
    )


def _renames(text: str) -> dict[str, str]:
    pairs = [pair.partition(":") for pair in _names(text)]
    renames = {old.strip(): new.strip() for old, _, new in pairs}
    if not all(renames) or not all(renames.values()) or len(set(renames.values())) < len(pairs):
        raise ValueError(f"{text!r} is not a list of old and new names; expected old:new,another:name")
    return renames


def _absolute(path: str) -> str:
    """Return the path as deltalake and every task understand it; InvalidOption for a malformed URL."""
    scheme = _ONE_SLASH.match(path)
    if scheme is not None and scheme[1].lower() == "file":
        return f"file://{path[len(scheme[0]) - 1 :]}"  # Hadoop's way to write file:///
    if scheme is not None:
        raise InvalidOption("path", f"{path}: a URL has two slashes, as in {scheme[1]}://bucket/table")
    # A path is relative to the working directory of the driver; tasks may have another one.
    return path if "://" in path else os.path.abspath(path)  # noqa: PTH100  Path resolves no ".."
