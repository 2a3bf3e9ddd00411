"""The ownership of a directory of Parquet files: only one query can write to it.

Spark keeps a list of the batches in a directory by number. A second query would skip its own batches of the
same numbers without an error. A file with a token, in the query's checkpoint and in the directory, names the
owner.
"""

import secrets
from pathlib import Path
from typing import Final

from headrace.pipeline.checkpoints import batch_numbers, read_checkpoint
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.files import put_if_absent
from headrace.pipeline.storage.object_store import StoragePath

OWNER: Final = "_headrace_query"  # readers skip files whose names begin with an underscore


def check_directory(directory: Path, checkpoint: StoragePath) -> None:
    """Raise PipelineError if the query with that checkpoint must not write to the directory."""
    batches = batch_numbers(directory / "_spark_metadata")
    if batches and read_checkpoint(checkpoint) is None:
        raise PipelineError(
            f"{directory} has files of batches 0 to {max(batches)} of a query without a checkpoint, and "
            "Spark would skip new batches of these numbers: move the directory away, or write to another one"
        )
    owner = _read(directory / OWNER)
    if owner and owner != _read(checkpoint / OWNER):
        raise PipelineError(
            f"{directory} belongs to another query, and Spark would skip batches of one of the two: "
            f"write to another directory, or remove {directory / OWNER} if that query will not run again"
        )


def claim_directory(directory: Path, checkpoint: StoragePath) -> None:
    """Make the query the owner of the directory; PipelineError if another one is."""
    check_directory(directory, checkpoint)
    put_if_absent(checkpoint / OWNER, secrets.token_hex(16))
    put_if_absent(directory / OWNER, _read(checkpoint / OWNER))
    check_directory(directory, checkpoint)  # another query may have been first


def _read(path: StoragePath) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
