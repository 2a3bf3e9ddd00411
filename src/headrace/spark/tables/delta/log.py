"""The log entry of a compaction, which fences concurrent writers of a Delta table.

deltalake 1.6.6 lets two commits that replace the same files both succeed if neither changes data: after two
concurrent calls of `optimize.compact()` the table has every row twice. But like other programs it refuses a
commit if the metadata has changed since the transaction began. So an entry that repeats the table's metadata
makes every transaction fail that began before it and is not committed yet, in any program. deltalake has no
call for such an entry.
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

    from headrace.spark.tables.delta.table import DeltaFile

MARK: Final = {"writer": "headrace"}  # in the commitInfo of our commits


def compaction_entry(
    table: "DeltaTable", removed: Iterable[Mapping[str, Any]], added: Iterable["DeltaFile"]
) -> bytes:
    """Return the entry of the next version, which replaces files by others with the same rows.

    `removed` are rows of get_add_actions(), with the encoded paths of the log.
    """
    now_ms = time.time_ns() // 1_000_000
    commit: dict[str, Any] = {"timestamp": now_ms, "readVersion": table.version(), "isBlindAppend": False}
    commit |= {"operation": "OPTIMIZE", "operationParameters": {"predicate": "[]"}, **MARK}
    found = table.metadata()
    metadata = {
        "id": str(found.id),
        "name": found.name,
        "description": found.description,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": table.schema().to_json(),
        "partitionColumns": list(found.partition_columns),
        "createdTime": found.created_time,
        "configuration": dict(found.configuration),
    }
    actions: list[dict[str, Any]] = [{"commitInfo": commit}, {"metaData": metadata}]
    for file in removed:
        removal = {"path": file["path"], "deletionTimestamp": now_ms, "size": file["size_bytes"]}
        actions.append({"remove": {**removal, "dataChange": False}})
    for new in added:
        addition = {
            "path": quote(new.path, safe="/="),
            "partitionValues": dict(new.partition),
            "size": new.size,
            "modificationTime": now_ms,
            "dataChange": False,
            "stats": new.statistics,
        }
        actions.append({"add": addition})
    return "\n".join(json.dumps(action, separators=(",", ":")) for action in actions).encode()


def put_if_absent(directory: Path, version: int, entry: bytes) -> bool:
    """Make `entry` the commit of a version; return False if that version exists.

    After False or an OSError, `entry` is not in the log.
    """
    log = directory / "_delta_log"
    staged = log / f"_commit_{secrets.token_hex(16)}.json.tmp"
    try:
        with staged.open("xb") as file:
            file.write(entry)
            file.flush()
            os.fsync(file.fileno())
        try:
            # As in deltalake: creating a link is atomic, and never replaces a file.
            os.link(staged, log / f"{version:020}.json")
        except OSError as error:
            # NFS may repeat a request that has succeeded, and return the error of the repetition.
            if staged.stat().st_nlink > 1:
                return True
            if isinstance(error, FileExistsError):
                return False
            raise
        return True
    finally:
        staged.unlink(missing_ok=True)
