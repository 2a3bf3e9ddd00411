"""A directory of Parquet files belongs to one query: Spark tells the batches of two apart by number alone.

Spark keeps a list of the batches that a directory's files are from. A second query would take its own batches
of these numbers for written, and leave them out without a word. A file with a token, the same in the query's
checkpoint and in the directory, says whose the directory is.
"""

import secrets
from pathlib import Path
from typing import Final

from headrace.pipeline.checkpoints import check_files
from headrace.pipeline.errors import PipelineError

OWNER: Final = "_headrace_query"  # Spark and others do not read files whose names begin like that


def check_directory(directory: Path, checkpoint: Path) -> None:
    """Raise PipelineError if the query with that checkpoint must not write to the directory."""
    check_files(directory, checkpoint)
    owner = _read(directory / OWNER)
    if owner and owner != _read(checkpoint / OWNER):
        raise PipelineError(
            f"{directory} belongs to another query, and Spark would leave out batches of one of the two: "
            f"write to another directory, or remove {directory / OWNER} if that query is gone for good"
        )


def claim_directory(directory: Path, checkpoint: Path) -> None:
    """Make the query the only one that may write to the directory; PipelineError if it must not."""
    check_directory(directory, checkpoint)
    _put_if_absent(checkpoint / OWNER, secrets.token_hex(16))
    _put_if_absent(directory / OWNER, _read(checkpoint / OWNER))
    check_directory(directory, checkpoint)  # another query may have been first


def _put_if_absent(path: Path, text: str) -> None:
    """Make a file that has its text from the first moment on; one that is there stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    beside.write_text(text)
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        return
    finally:
        beside.unlink()


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        return ""
