"""Regular expressions of strangers, asked whether they match a property's name."""

import re2

from headrace.registry.formats.differences import TooComplex

_BUDGET = 20_000  # of one comparison
_COMPILING = 20  # units of it: at most a millisecond, as matching a hundred characters is some microseconds
_MOST_MEMORY = 1 << 17  # of one expression


class Patterns:
    """Answers within a budget, by RE2: in time linear in the name, whatever the expression.

    `TooComplex` is raised for what RE2 cannot do (looking ahead and back), too: no answer beats a wrong one.
    """

    def __init__(self) -> None:
        self._left = _BUDGET
        self._options = re2.Options()
        self._options.max_mem = _MOST_MEMORY
        self._options.log_errors = False
        self._compiled: dict[str, re2._Regexp] = {}

    def match(self, pattern: str, name: str) -> bool:
        self._spend(1 + len(name) // 100)
        if pattern not in self._compiled:
            self._spend(_COMPILING)
            try:
                self._compiled[pattern] = re2.compile(pattern, self._options)
            except re2.error as error:
                raise TooComplex from error
        return self._compiled[pattern].search(name) is not None

    def _spend(self, units: int) -> None:
        self._left -= units
        if self._left < 0:
            raise TooComplex
