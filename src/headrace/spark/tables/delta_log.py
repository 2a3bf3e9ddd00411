"""An entry of a Delta table's log that we write ourselves: a compaction that fences concurrent writers.

deltalake 1.6.6 lets two commits that replace the same files both succeed if neither changes data: two calls
of `optimize.compact()` that began at the same version leave every row in the table twice. But like other
programs it refuses a commit if the metadata has changed since the version that the transaction began at. An
entry that repeats the table's metadata therefore makes every transaction fail that began before it and is not
committed yet, whoever runs it. deltalake has no call for such an entry.
"""

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from deltalake import DeltaTable

    from headrace.spark.tables.delta_table import DeltaFile

MARK: Final = {"writer": "headrace"}  # what a commit of ours says in its commitInfo
_CHECKPOINT_INTERVAL: Final = "delta.checkpointInterval"
_DEFAULT_INTERVAL: Final = 100  # deltalake's


def compaction_entry(
    table: "DeltaTable", removed: Iterable[Mapping[str, Any]], added: Iterable["DeltaFile"]
) -> bytes:
    """The entry, for the version after the table's, that replaces files by others with the same rows.

    `removed` are rows of get_add_actions(), which has paths as they are in the log.
    """
    now_ms = time.time_ns() // 1_000_000
    actions: list[dict[str, Any]] = [
        {
            "commitInfo": {
                "timestamp": now_ms,
                "operation": "OPTIMIZE",
                "operationParameters": {"predicate": "[]"},
                "readVersion": table.version(),
                "isBlindAppend": False,
                **MARK,
            }
        },
        {"metaData": _metadata(table)},
    ]
    actions += [
        {
            "remove": {
                "path": each["path"],
                "deletionTimestamp": now_ms,
                "dataChange": False,
                "size": each["size_bytes"],
            }
        }
        for each in removed
    ]
    actions += [
        {
            "add": {
                "path": quote(each.path, safe="/="),
                "partitionValues": dict(each.partition),
                "size": each.size,
                "modificationTime": now_ms,
                "dataChange": False,
                "stats": each.statistics,
            }
        }
        for each in added
    ]
    return "\n".join(json.dumps(each, separators=(",", ":")) for each in actions).encode()


def _metadata(table: "DeltaTable") -> dict[str, Any]:
    """The metadata as the table has it already."""
    found = table.metadata()
    return {
        "id": str(found.id),
        "name": found.name,
        "description": found.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(found.partition_columns),
        "createdTime": found.created_time,
        "configuration": dict(found.configuration),
    }


def put_if_absent(directory: Path, version: int, entry: bytes) -> bool:
    """Make `entry` the commit of that version; False if that version exists.

    After False, or an OSError, `entry` is not in the log.
    """
    log = directory / "_delta_log"
    staged = log / f"_commit_{secrets.token_hex(16)}.json.tmp"
    try:
        with staged.open("xb") as file:
            file.write(entry)
            file.flush()
            os.fsync(file.fileno())
        try:
            # As deltalake does it: a link is made completely or not at all, and never replaces a file.
            os.link(staged, log / f"{version:020}.json")
        except OSError as error:
            # NFS may repeat a request that has succeeded, and report that the repetition failed.
            if staged.stat().st_nlink > 1:
                return True
            if isinstance(error, FileExistsError):
                return False
            raise
        return True
    finally:
        staged.unlink(missing_ok=True)


def checkpoint_if_due(table: "DeltaTable") -> None:
    """Write a checkpoint if this version is to have one, as deltalake does after commits of its own."""
    interval = int(table.metadata().configuration.get(_CHECKPOINT_INTERVAL, _DEFAULT_INTERVAL))
    if (table.version() + 1) % interval == 0:
        table.create_checkpoint()
