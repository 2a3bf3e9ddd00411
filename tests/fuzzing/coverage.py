"""Which edges between lines a function executes, and how many lines."""

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any, Final

OURS: Final = "/headrace/"
COMPILED: Final = "<"  # how the name of code begins that was compiled at run time

Edge = tuple[int, int, int]  # code, line, next line


class TooMuchWork(BaseException):
    """The function has executed too many lines for its input; no `except Exception` catches it."""


class Coverage:
    """Traces calls; `seen` has the edges of all calls so far."""

    def __init__(self) -> None:
        self.seen: set[Edge] = set()
        self._numbers: dict[CodeType, int] = {}  # 0: not ours
        self._edges: set[Edge] = set()
        self._lines = 0
        self._limit = 0

    def run(self, function: Callable[[bytes], None], data: bytes, max_lines: int) -> set[Edge]:
        """Call `function` and return its new edges; its exceptions pass, with the edges added to `seen`."""
        self._edges, self._lines, self._limit = set(), 0, max_lines
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            function(data)
        finally:
            sys.settrace(before)
            new = self._edges - self.seen
            self.seen |= new
        return new

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        number = self._numbers.get(code)
        if number is None:
            ours = OURS in code.co_filename or code.co_filename.startswith(COMPILED)
            number = self._numbers[code] = len(self._numbers) + 1 if ours else 0
        return self._line_tracer(number) if number else None

    def _line_tracer(self, number: int) -> Callable[..., Any]:
        last = 0

        def line(frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal last
            if event == "line":
                self._edges.add((number, last, frame.f_lineno))
                last = frame.f_lineno
                self._lines += 1
                if self._lines > self._limit:
                    raise TooMuchWork(f"more than {self._limit:,} lines")
            return line

        return line
