"""Operations on files of a pipeline's state, local and remote."""

import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from headrace.pipeline.paths import local_directory, spark_url
from headrace.pipeline.storage import hadoop_files, object_store
from headrace.pipeline.storage.remote_path import RemotePath, StoragePath
from headrace.pipeline.storage.versions import VersionedStore

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.+)")


def is_remote(text: str) -> bool:
    """Return whether it is a URL of storage that can hold the state of a pipeline."""
    return _scheme(text) in (*object_store.SCHEMES, *hadoop_files.SCHEMES)


def _scheme(text: str) -> str | None:
    found = _URL.fullmatch(text)
    return None if found is None else found[1].lower()


def state_root(text: str) -> StoragePath:
    """Return the directory of a path or of a URL; PipelineError if state cannot be stored there."""
    if not is_remote(text):
        return local_directory(text, "the state of a pipeline")
    url = text.rstrip("/")
    if _scheme(url) in hadoop_files.SCHEMES:
        return RemotePath(url, VersionedStore(url, hadoop_files.HadoopFiles(url)))
    return RemotePath(url, object_store.ObjectStore.at(url))


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
