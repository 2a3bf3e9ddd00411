"""Regular expressions of others: RE2, which matches in time linear in the length of the text.

RE2 has no backreferences and no lookaround. The memory of a compiled expression is limited, and RE2's wrapper
caches 128 of them.
"""

from functools import cache
from typing import Any, Final

EXPRESSION_BYTES: Final = 256 * 1024
"""The memory limit of a compiled expression, including its automaton."""


class InvalidExpression(ValueError):
    """An expression has a syntax error, a construct that RE2 does not support, or needs too much memory."""


def compile_expression(expression: str) -> Any:
    """Return the compiled expression, which has the methods of Python's; raise InvalidExpression."""
    import re2  # noqa: PLC0415  2.6 MB, which few processes need

    try:
        return re2.compile(expression, _options())
    except re2.error as error:
        why = error.args[0]
        raise InvalidExpression(why.decode(errors="replace") if isinstance(why, bytes) else why) from error


@cache
def _options() -> Any:
    import re2  # noqa: PLC0415

    options = re2.Options()
    options.log_errors = False
    options.max_mem = EXPRESSION_BYTES
    return options
