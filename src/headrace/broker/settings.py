"""What a setting is, and how a person's text becomes its value or a sentence about what is wrong.

A setting is declared once, in `broker_settings` or `topic_settings`: Kafka's name, type, default,
bounds, meaning, and whether it can change while the broker runs.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum


class InvalidSetting(Exception):
    """A setting is unknown or its value cannot be; the sentence names it and says what would do."""


class Kind(Enum):
    """Types as Kafka names them in DescribeConfigs, by number."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Scope(Enum):
    """When a change takes effect."""

    READ_ONLY = "read-only"  # with the next start
    CLUSTER_WIDE = "cluster-wide"  # at once, for one broker or for all


Value = bool | str | int | float | tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One name that can be set."""

    name: str
    kind: Kind
    default: Value | None
    doc: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    scope: Scope = Scope.READ_ONLY

    def parse(self, text: str) -> Value:
        """The value that `text` means; InvalidSetting with a sentence if it means none."""
        text = text.strip()
        value: Value
        try:
            match self.kind:
                case Kind.BOOLEAN:
                    value = {"true": True, "false": False}[text.lower()]
                case Kind.INT | Kind.LONG:
                    value = int(text)
                case Kind.DOUBLE:
                    value = float(text)
                case Kind.LIST:
                    value = tuple(part.strip() for part in text.split(",") if part.strip())
                case Kind.STRING:
                    value = text
        except (KeyError, ValueError):
            raise InvalidSetting(f"{self.name}={text}: expected {self._expected()}") from None
        self._check(value, text)
        return value

    def _check(self, value: Value, text: str) -> None:
        if isinstance(value, int | float) and not isinstance(value, bool):
            low = float("-inf") if self.low is None else self.low
            high = float("inf") if self.high is None else self.high
            if not low <= value <= high:
                raise InvalidSetting(f"{self.name}={text}: expected {self._expected()}")
        members = value if isinstance(value, tuple) else (value,)
        if self.choices and not all(member in self.choices for member in members):
            raise InvalidSetting(f"{self.name}={text}: expected {self._expected()}")

    def _expected(self) -> str:
        if self.choices:
            return f"{'some' if self.kind is Kind.LIST else 'one'} of {', '.join(self.choices)}"
        what = {
            Kind.BOOLEAN: "true or false",
            Kind.INT: "a whole number",
            Kind.LONG: "a whole number",
            Kind.DOUBLE: "a number",
            Kind.LIST: "a list separated by commas",
            Kind.STRING: "text",
        }[self.kind]
        if self.low is not None and self.high is not None:
            return f"{what} from {self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"{what} of at least {self.low:g}"
        return what


def show(value: Value | None) -> str | None:
    """A value as Kafka prints it."""
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

    def find(self, name: str) -> Setting:
        """The setting called `name`; InvalidSetting with the nearest known name if there is none."""
        setting = self.by_name.get(name)
        if setting is None:
            near = difflib.get_close_matches(name, self.by_name, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidSetting(f"there is no setting {name!r}{hint}")
        return setting

    def parse(self, texts: Mapping[str, str]) -> dict[str, Value]:
        return {name: self.find(name).parse(text) for name, text in texts.items()}


def parse_properties(text: str, source: str) -> dict[str, str]:
    """The `name=value` lines of a properties file: comments and continued lines as in Java's."""
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
