"""Where the files of a pipeline are: local directories, or URLs of other storage; and operations on them."""

import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from headrace.pipeline.errors import PipelineError
from headrace.pipeline.storage.object_store import SCHEMES, ObjectStore, RemotePath, StoragePath

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)")


def is_remote(text: str) -> bool:
    """Return whether it is a URL of storage that can hold the state of a pipeline."""
    found = _URL.fullmatch(text)
    return found is not None and found[1].lower() in SCHEMES and found[2].startswith("//")


def state_root(text: str) -> StoragePath:
    """Return the directory of a path or of a URL; PipelineError if state cannot be stored there."""
    if not is_remote(text):
        return local_directory(text, "the state of a pipeline")
    url = text.rstrip("/")
    return RemotePath(url, ObjectStore.at(url))


def local_path(text: str) -> Path | None:
    """Return the local path, also of a file: URL; None for a URL of other storage."""
    found = _URL.fullmatch(text)
    if found is None:
        if text.lower().startswith("file:"):
            raise PipelineError(
                f"{text}: the path of a file: URL begins with a slash, as in file:///data/table"
            )
        return Path(text).absolute()
    scheme, rest = found.groups()
    if scheme.lower() != "file":
        if not rest.startswith("//"):
            raise PipelineError(f"{text}: a URL has two slashes before the host, as in {scheme}://host/path")
        return None
    if rest.startswith("//"):
        host, _, path = rest.removeprefix("//").partition("/")
        if host not in {"", "localhost"}:
            raise PipelineError(f"{text}: {host!r} is the host of this URL; expected file:///{host}/{path}")
        rest = f"/{path}"
    return Path(rest)


def local_directory(text: str, what: str) -> Path:
    """Return the local directory; PipelineError for a URL of other storage."""
    found = _URL.fullmatch(text)
    path = None if found is not None and found[1].lower() != "file" else local_path(text)
    if path is None:
        raise PipelineError(
            f"{what} cannot be stored at {text}: it has to be a directory of this machine's file system, "
            "which may be mounted storage; state may also be in an object store (s3a://, gs://, abfss://)"
        )
    return path


def spark_url(path: Path) -> str:
    """Return the URL of a local path, for any default file system of Spark (fs.defaultFS).

    Hadoop does not unescape URLs, so the path is not escaped.
    """
    return f"file://{path}"


def checkpoint_url(path: StoragePath) -> str:
    """Return the URL by which Spark finds the path. Hadoop's name of S3 is s3a."""
    if isinstance(path, Path):
        return spark_url(path)
    scheme, rest = str(path).split("://", 1)
    return f"{'s3a' if scheme.lower() == 's3' else scheme}://{rest}"


def replace_text(path: StoragePath, text: str) -> None:
    """Write a file; readers see the old content or the new one."""
    if isinstance(path, RemotePath):
        path.store.write(path.key, text.encode())
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.rename(path)


def put_if_absent(path: StoragePath, text: str) -> None:
    """Create a file with its content atomically; an existing one is not changed."""
    if isinstance(path, RemotePath):
        path.store.create(path.key, text.encode())
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    beside.write_text(text)
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        return
    finally:
        beside.unlink()


def delete_tree(path: StoragePath) -> None:
    """Delete a directory, if there is one."""
    if isinstance(path, RemotePath):
        path.store.delete_tree(path.key)
    else:
        shutil.rmtree(path, ignore_errors=True)
