"""Values into an array, where some may not fit: they are found, and the others are not held up."""

from collections.abc import Callable, MutableSequence
from typing import Any, Final

import pyarrow as pa

from headrace.pipeline.registry.shapes import Shape, build

UNFIT: Final = (
    ValueError,
    TypeError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
    pa.ArrowException,
)
"""What a value that does not fit its type makes Python and Arrow say."""

Tell = Callable[[int, str], None]


def build_fitting(shape: Shape, values: MutableSequence[Any], tell: Tell) -> pa.Array:
    """The array; a value that does not fit is None, there and in `values`; `tell` gets its row and why."""
    try:
        return build(shape, values)
    except UNFIT:
        _take_out(shape, values, 0, len(values), tell)
    return build(shape, values)


def _take_out(shape: Shape, values: MutableSequence[Any], begin: int, end: int, tell: Tell) -> None:
    """Of ten thousand rows a few are wrong: halves that are right are not looked at more closely."""
    try:
        build(shape, values[begin:end])
    except UNFIT as error:
        if end - begin == 1:
            values[begin] = None
            tell(begin, f"it does not fit the columns: {in_short(error)}")
            return
        middle = (begin + end) // 2
        _take_out(shape, values, begin, middle, tell)
        _take_out(shape, values, middle, end, tell)


def in_short(error: BaseException) -> str:
    """Its words on one line, not too many of them."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= 300 else f"{said[:297]}..."
