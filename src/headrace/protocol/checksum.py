"""CRC-32C, the checksum of record batches and of several files.

When the package `crc32c` is imported, it looks for its version among all installed packages. That takes 30 ms
and 4 MB in every process, so its extension module is loaded alone.
"""

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any, Final


def _load() -> Callable[..., int]:
    package = find_spec("crc32c")
    found = package and PathFinder.find_spec("crc32c._crc32c", package.submodule_search_locations)
    if not found or found.loader is None:
        from crc32c import crc32c  # noqa: PLC0415  another version of the package has other modules

        return crc32c
    module: Any = module_from_spec(found)
    found.loader.exec_module(module)
    loaded: Callable[..., int] = module.crc32c
    return loaded


crc32c: Final = _load()
"""Return the checksum of data, or continue that of earlier data: crc32c(data, crc32c(earlier))."""
