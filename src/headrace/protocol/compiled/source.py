"""Generated Python source: lines, indentation, unique names, and the constants it refers to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

# The struct format code and size of every kind of fixed size.
FIXED: Final[dict[str, tuple[str, int]]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}


class Source:
    """The body of one function, written line by line and compiled at the end."""

    def __init__(self, version: int, helpers: dict[str, Any], *, flexible: bool, sliced: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.sliced = sliced
        self.globals = dict(helpers)
        self._lines: list[str] = []
        self._depth = 1
        self._names = 0
        self._interned: dict[Any, str] = {}

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Put the lines that are written inside into the suite of `head`."""
        self.line(head)
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, hint: str) -> str:
        self._names += 1
        return f"{hint}_{self._names}"

    def constant(self, hint: str, value: Any) -> str:
        name = self.fresh(hint)
        self.globals[name] = value
        return name

    def interned(self, hint: str, key: Any, make: Callable[[], Any]) -> str:
        """Like `constant`, but only once for each `key`."""
        if key not in self._interned:
            self._interned[key] = self.constant(hint, make())
        return self._interned[key]

    def text(self, signature: str) -> str:
        return "\n".join([f"def {signature}:", *self._lines, ""])

    def compile(self, signature: str, title: str) -> Callable[..., Any]:
        """Compile the function; tracebacks and profiles show it as `title`."""
        code = compile(self.text(signature), f"<{title}>", "exec")
        exec(code, self.globals)  # noqa: S102 (it consists of field names of our own classes)
        function: Callable[..., Any] = self.globals[signature.partition("(")[0]]
        return function
