"""Small programs that we write for Spark, in the user's cache directory."""

import os
from pathlib import Path


def cache_directory() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "headrace"


def write_program(path: Path, text: str) -> None:
    """Create an executable file with that text, unless it exists."""
    if path.is_file() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}-{os.getpid()}")
    beside.write_text(text)
    beside.chmod(0o755)
    beside.rename(path)  # atomic: another process may be starting Spark, too
