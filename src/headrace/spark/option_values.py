"""The options of a data source as Spark passes them: text by names in any case. All checks are here."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from headrace.spark.errors import InvalidOption

Parsed = TypeVar("Parsed")

_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,19}")
_LARGEST: Final = 2**63 - 1
# As JavaUtils.timeStringAsMs of Spark; without a unit, it is milliseconds.
_DURATION: Final = re.compile(r"([0-9]{1,18})\s*([a-z]*)")
_MS: Final = {"": 1, "us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4, "min": 6e4, "h": 3.6e6, "d": 8.64e7}
FLAG: Final = {"true": True, "false": False}


class Options:
    """Options with known names; InvalidOption names the one that is wrong."""

    def __init__(
        self,
        given: Mapping[str, str],
        known: tuple[str, ...],
        *,
        prefix: str,
        silent: tuple[str, ...] = (),
        refused: Mapping[str, str] | None = None,
    ) -> None:
        """Names with the prefix are accepted, too, and `silent` ones, which no message lists.

        `refused` has the reason for names that cannot be set; a name that ends in a dot stands for all names
        that begin with it.
        """
        by_lower = {name.lower(): name for name in (*known, *silent)}
        self._values: dict[str, str] = {}
        self._references: dict[str, str] = {}  # by the names of options whose values they have replaced
        for name, value in given.items():
            lower = name.lower()
            for each, why in (refused or {}).items():
                if lower == each or (each.endswith(".") and lower.startswith(each)):
                    raise InvalidOption(name, f"cannot be set: {why}")
            if lower not in by_lower and not lower.startswith(prefix):
                close = difflib.get_close_matches(lower, by_lower, 1)
                expected = ", ".join((*known, f"{prefix}*"))
                hint = f"did you mean {by_lower[close[0]]}?" if close else f"expected {expected}"
                raise InvalidOption(name, f"unknown; {hint}")
            self._values[lower] = value

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._values

    def get(self, name: str, default: str | None = None) -> str | None:
        return self._values.get(name.lower(), default)

    def below(self, prefix: str) -> dict[str, str]:
        """Return the options with a prefix, by their names without it."""
        return {
            name.removeprefix(prefix): value
            for name, value in self._values.items()
            if name.startswith(prefix)
        }

    def resolve(self, values: Mapping[str, str]) -> None:
        """Set what the references in options refer to; no message has that."""
        for name, value in values.items():
            self._references[name] = self._values[name]
            self._values[name] = value

    def wrong(self, name: str, why: str) -> InvalidOption:
        """Return the error about an option's value, which it does not show if the option has a reference."""
        reference = self._references.get(name.lower())
        return InvalidOption(name, why if reference is None else f"the value of {reference} is not valid")

    def parsed(self, name: str, parse: Callable[[str], Parsed], default: Parsed) -> Parsed:
        """Return what `parse` makes of the option; its ValueError becomes InvalidOption."""
        text = self.get(name)
        if text is None:
            return default
        try:
            return parse(text)
        except ValueError as error:
            raise self.wrong(name, str(error)) from None

    def integer(self, name: str, default: Any, *, least: int, most: int = _LARGEST) -> Any:
        """Return an integer, or the default, which may be None."""

        def parse(text: str) -> int:
            if not _INTEGER.fullmatch(text.strip()) or not least <= int(text) <= most:
                expected = f"of at least {least}" if most == _LARGEST else f"from {least} to {most}"
                raise ValueError(f"{text.strip()!r} is not an integer {expected}")
            return int(text)

        return self.parsed(name, parse, default)

    def choice(self, name: str, choices: Mapping[str, Parsed], default: str) -> Parsed:
        """Return the meaning of a word, written in any case."""
        word = (self.get(name) or default).strip().lower()
        if word not in choices:
            raise self.wrong(name, f"{word!r} is not one of {', '.join(choices)}")
        return choices[word]


def parse_duration_s(text: str) -> float:
    """Return the seconds of "15m", "90s" or "1500" (milliseconds); ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or found[2] not in _MS:
        raise ValueError(f"{text!r} is not a duration; expected a number and a unit, as in 30s or 15m")
    ms = int(found[1]) * _MS[found[2]]
    if ms > _LARGEST:
        raise ValueError(f"{text!r} is more than {_LARGEST} milliseconds")
    return ms / 1000
