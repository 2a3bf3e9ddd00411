"""Paths of sinks and state: local directories, or URLs of other storage."""

import re
from pathlib import Path
from typing import Final

from headrace.pipeline.errors import PipelineError

_URL: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(/.*)")


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
            "which may be mounted storage"
        )
    return path


def spark_url(path: Path) -> str:
    """Return the URL of a local path, for any default file system of Spark (fs.defaultFS).

    Hadoop does not unescape URLs, so the path is not escaped.
    """
    return f"file://{path}"
