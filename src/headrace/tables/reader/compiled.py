"""Functions that numba compiles to machine code, once, with a cache beside the source."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Return the compiled function. Its arguments are arrays, numbers and tuples of these."""
    try:
        machine_code: Function = njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no directory for the cache is writable: every process compiles
        machine_code = njit(nogil=True)(function)
    return machine_code


@compiled
def copy(source: Bytes, at: int, size: int, target: Bytes, to: int) -> None:
    """Copy bytes. With unsigned indexes, which cannot count from the end, the loop becomes a block copy."""
    first, place = np.uint64(at), np.uint64(to)
    for i in range(np.uint64(size)):
        target[place + i] = source[first + i]
