"""Declarations of settings, and parsing of their values.

A setting is declared once, with its documentation in the line below:

    documented(
        integer("num.partitions", 1, low=1),
        "The default number of partitions of a topic.",
        ...
    )

`scope` is whether it can change while the broker runs.
"""

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Final


class InvalidSetting(Exception):
    """A setting is unknown or its value is invalid; the message says what is expected."""


class Kind(Enum):
    """The types of settings, by their numbers in DescribeConfigs."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8  # a Java class
    PASSWORD = 9  # the value is never shown


_BITS: Final = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}
_WHOLE_NUMBER: Final = re.compile("[+-]?[0-9]+")
_LONGEST_NUMBER: Final = 100  # characters: Python takes seconds for a number of a million digits
_LONGEST_NAME: Final = 100  # characters of a name for which a similar one is searched


class Scope(Enum):
    """Kafka's dynamic update modes."""

    READ_ONLY = "read-only"  # a change takes effect with the next start
    PER_BROKER = "per-broker"  # dynamic, for one broker
    CLUSTER_WIDE = "cluster-wide"  # dynamic, for one broker or for all


NO_EFFECT: Final = "No effect: "
"""The beginning of the documentation of a setting that has no effect; the reason follows."""

Value = bool | str | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The declaration of a setting."""

    name: str
    kind: Kind
    default: Value | None = None
    doc: str = ""
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    form: str | None = None  # a regular expression for text, or for each member of a list
    example: str = ""  # a description of `form` for error messages
    scope: Scope = Scope.READ_ONLY
    only_default: bool = False  # other values are refused; `doc` says why
    internal: bool = False  # DescribeConfigs shows it only if it is set

    @property
    def has_effect(self) -> bool:
        """Whether the setting does something here, and is not only accepted for compatibility with Kafka."""
        return not self.doc.startswith(NO_EFFECT)

    @property
    def is_sensitive(self) -> bool:
        """Whether DescribeConfigs hides the value."""
        return self.kind in {Kind.PASSWORD, Kind.UNKNOWN}

    def parse(self, text: str) -> Value:
        """Return the value of `text`; raise InvalidSetting if it is invalid."""
        text = text.strip()
        value: Value
        try:
            match self.kind:
                case Kind.BOOLEAN:
                    value = {"true": True, "false": False}[text.lower()]
                case Kind.SHORT | Kind.INT | Kind.LONG:
                    value = _whole_number(text, _BITS[self.kind])
                case Kind.DOUBLE:
                    value = float(text)
                case Kind.LIST:
                    value = tuple(part.strip() for part in text.split(",") if part.strip())
                case Kind.STRING | Kind.CLASS | Kind.PASSWORD | Kind.UNKNOWN:
                    value = text
        except (KeyError, ValueError):
            raise InvalidSetting(f"{self.name}={text}: expected {self._expected()}") from None
        except OverflowError as error:
            raise InvalidSetting(f"{self.name}={text}: expected {error}") from None
        self._check(value, text)
        return value

    def _check(self, value: Value, text: str) -> None:
        is_valid = True
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = float("-inf") if self.low is None else self.low
            high = float("inf") if self.high is None else self.high
            is_valid = low <= value <= high
        for member in value if isinstance(value, tuple) else (value,):
            is_valid &= not self.choices or member in self.choices
            is_valid &= self.form is None or re.fullmatch(self.form, str(member)) is not None
        if not is_valid:
            raise InvalidSetting(f"{self.name}={text}: expected {self._expected()}")
        if self.only_default and value != self.default:
            raise InvalidSetting(f"{self.name}={text}: {self.doc[0].lower()}{self.doc[1:]}")

    def _expected(self) -> str:
        if self.example:
            return self.example
        if self.choices:
            return f"{'some' if self.kind is Kind.LIST else 'one'} of {', '.join(self.choices)}"
        what = {
            **dict.fromkeys(_BITS, "a whole number"),
            Kind.BOOLEAN: "true or false",
            Kind.DOUBLE: "a number",
            Kind.LIST: "a list separated by commas",
            Kind.CLASS: "a class",
        }.get(self.kind, "text")
        if self.low is not None and self.high is not None:
            return f"{what} from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{what} of at least {self.low:g}"
        return f"{what} of {_BITS[self.kind]} bits" if self.kind in _BITS else what


def _declare(kind: Kind, name: str, default: Value | None = None, **more: Any) -> Setting:
    return Setting(name=name, kind=kind, default=default, **more)


flag = partial(_declare, Kind.BOOLEAN)
text = partial(_declare, Kind.STRING)
short = partial(_declare, Kind.SHORT)
integer = partial(_declare, Kind.INT)
long = partial(_declare, Kind.LONG)
double = partial(_declare, Kind.DOUBLE)
items = partial(_declare, Kind.LIST)
java_class = partial(_declare, Kind.CLASS)
password = partial(_declare, Kind.PASSWORD)
PER_BROKER, CLUSTER_WIDE = Scope.PER_BROKER, Scope.CLUSTER_WIDE


def documented(*declared: Setting | str) -> list[Setting]:
    """Return the settings, each with the text that follows it as its documentation."""
    settings = []
    for setting, doc in zip(declared[::2], declared[1::2], strict=True):
        assert isinstance(setting, Setting), setting
        assert isinstance(doc, str), (setting.name, doc)
        settings.append(replace(setting, doc=doc))
    return settings


def without_effect(reason: str, *settings: Setting) -> list[Setting]:
    """Return settings of Kafka that are accepted for compatibility, and do nothing for this reason."""
    return [replace(setting, doc=f"{NO_EFFECT}{reason}.") for setting in settings]


def _whole_number(text: str, bits: int) -> int:
    if len(text) > _LONGEST_NUMBER or not _WHOLE_NUMBER.fullmatch(text):
        raise ValueError(text)
    value = int(text)
    if value >= 2 ** (bits - 1):
        raise OverflowError(f"a whole number of at most {2 ** (bits - 1) - 1}")
    if value < -(2 ** (bits - 1)):
        raise ValueError(text)
    return value


def shown(setting: Setting, text: str) -> str | None:
    """Return the value that `text` gives a setting as Kafka prints it; None if it is not shown at all."""
    return None if setting.is_sensitive else show(setting.parse(text))


def show(value: Value | None) -> str | None:
    """Return a value as Kafka prints it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value)


class Settings:
    """A table of settings by name."""

    def __init__(self, settings: Iterable[Setting]) -> None:
        self.by_name = {setting.name: setting for setting in settings}

    def get(self, name: str) -> Setting | None:
        """Return the setting called `name`, or None."""
        return self.by_name.get(name)

    def find(self, name: str) -> Setting:
        """Return the setting called `name`; raise InvalidSetting with a similar name if it is unknown."""
        setting = self.get(name)
        if setting is None:
            # The comparison with every known name takes time proportional to the length of `name`.
            near = difflib.get_close_matches(name, self.by_name, n=1) if len(name) <= _LONGEST_NAME else []
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidSetting(f"there is no setting {name[:_LONGEST_NAME]!r}{hint}")
        return setting

    def parse(self, texts: Mapping[str, str]) -> dict[str, Value]:
        return {name: self.find(name).parse(text) for name, text in texts.items()}


def parse_properties(text: str, source: str) -> dict[str, str]:
    """Return the `name=value` lines of a properties file, with Java's comments and continuation lines."""
    values: dict[str, str] = {}
    logical = text.replace("\\\n", "")
    for number, line in enumerate(logical.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise InvalidSetting(f"{source}, line {number}: {stripped!r} is not name=value")
        values[name.strip()] = value.strip()
    return values
