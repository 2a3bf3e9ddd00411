"""Every message class there is, in every version: what the tests about all of them run over."""

import importlib
import pkgutil
from typing import Any, NamedTuple

from headrace.protocol import schema
from headrace.protocol.message import Message


class Case(NamedTuple):
    """One message class in one version; `module` is the schema file that holds it."""

    module: str
    cls: type[Message]
    version: int

    @property
    def flexible(self) -> bool:
        return self.version in self.cls.__codec__.flexible

    def __str__(self) -> str:
        return f"{self.cls.__name__}-v{self.version}"


def every_class() -> list[tuple[str, type[Message]]]:
    found: list[tuple[str, type[Message]]] = []
    for info in pkgutil.iter_modules(schema.__path__):
        module = importlib.import_module(f"{schema.__name__}.{info.name}")
        found += [(info.name, value) for value in vars(module).values() if _is_message(value)]
    return found


def every_case() -> list[Case]:
    return [Case(module, cls, version) for module, cls in every_class() for version in cls.__codec__.versions]


def hand_coded_cases() -> list[Case]:
    """Produce, Fetch and ApiVersions."""
    return [case for case in every_case() if case.cls.__api_key__ in {0, 1, 18}]


def newest_cases() -> list[Case]:
    """Every message class in its newest version and in its newest one before flexible versions."""
    cases = []
    for module, cls in every_class():
        codec = cls.__codec__
        legacy = [version for version in codec.versions if version not in codec.flexible]
        cases += [Case(module, cls, version) for version in {*legacy[-1:], codec.versions[-1]}]
    return cases


def _is_message(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Message) and value is not Message
