"""protoc, the compiler of .proto files, in a process of its own.

Within our process it would take 0.4 ms a file instead of 15. But it is C++ that parses untrusted input: an
option with a hundred thousand brackets overflows its stack and ends the process. So it runs in a process with
limited memory and time, in a directory with the files of one schema, and reads no others except Google's.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
from functools import lru_cache
from pathlib import Path, PurePosixPath

from headrace.registry.formats.schema import InvalidSchema

Files = tuple[tuple[str, str], ...]  # the names of imports, and texts

_SECONDS = 10
_MAX_MEMORY = 1 << 30
_MAX_OUTPUT = 64 << 20
_MAX_ERRORS = 5
_MAX_CACHED = 1 << 16  # characters of files whose result is cached
_RUN = f"""
import resource, sys
if sys.platform == "linux":  # macOS refuses it
    resource.setrlimit(resource.RLIMIT_AS, ({_MAX_MEMORY}, {_MAX_MEMORY}))
resource.setrlimit(resource.RLIMIT_CPU, ({_SECONDS}, {_SECONDS}))
resource.setrlimit(resource.RLIMIT_FSIZE, ({_MAX_OUTPUT}, {_MAX_OUTPUT}))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
sys.path.append(sys.argv[1])
from grpc_tools import _protoc_compiler
sys.exit(_protoc_compiler.run_main([argument.encode() for argument in ["protoc", *sys.argv[2:]]]))
"""
_ERROR = re.compile(r"(?P<file>[^:\n]+):(?P<line>\d+):(?P<column>\d+): (?P<message>.*)")


def compiled(files: Files) -> bytes:
    """Return the FileDescriptorSet of the first file and its imports, which come before it in the set."""
    small = sum(len(text) for _, text in files) <= _MAX_CACHED
    return _compiled(files) if small else _compiled.__wrapped__(files)


@lru_cache(maxsize=256)
def _compiled(files: Files) -> bytes:
    main = files[0][0]
    with tempfile.TemporaryDirectory(prefix="headrace-protoc-") as directory:
        for name, text in files:
            _write(Path(directory), name, text)
        _run(Path(directory), main)
        return (Path(directory) / "out").read_bytes()


def _write(directory: Path, name: str, text: str) -> None:
    path = PurePosixPath(name)
    unsafe = path.is_absolute() or ".." in path.parts or str(path) != name or not name.isprintable()
    if unsafe or "\\" in name or len(name) > 255 or not name.endswith(".proto"):
        raise InvalidSchema(f"This is not a valid name of an import: {name[:100]!r}.")
    file = directory / "in" / path
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="")
    except OSError as error:  # a file and a directory have one name: a.proto and a.proto/b.proto
        raise InvalidSchema(f"This name of an import conflicts with another one: {name!r}.") from error


def _run(directory: Path, main: str) -> None:
    spec = importlib.util.find_spec("grpc_tools")
    assert spec is not None, "grpcio-tools is not installed"
    assert spec.submodule_search_locations is not None, spec
    package = Path(spec.submodule_search_locations[0])
    arguments = ("-I.", f"-I{package / '_proto'}", "--include_imports", "--descriptor_set_out=../out", main)
    command = [sys.executable, "-I", "-S", "-c", _RUN, str(package.parent), *arguments]
    try:
        done = subprocess.run(  # noqa: S603  our own command; the names of the files have been checked
            command,
            cwd=directory / "in",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InvalidSchema(f"protoc did not compile the schema within {_SECONDS} seconds.") from error
    if done.returncode < 0 or (done.returncode and not done.stderr):
        raise InvalidSchema("The schema made protoc crash.")
    if done.returncode:
        raise InvalidSchema(_message(done.stderr.decode(errors="replace"), main))


def _message(output: str, main: str) -> str:
    """Return the errors of protoc as sentences with lines and columns."""
    found = [
        match
        for match in map(_ERROR.fullmatch, output.splitlines())
        if match and " warning: " not in match[0]
    ]
    if not found:
        return f"The schema is not valid: {output.strip()[:500]}"
    said = [
        (f"In {match['file']!r}, line" if match["file"] != main else "Line")
        + f" {match['line']}, column {match['column']}: {match['message'][:300]}"
        for match in found[:_MAX_ERRORS]
    ]
    return "The schema is not valid. " + " ".join(said)
