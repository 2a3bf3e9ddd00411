"""The legal transitions of a state machine, as data."""

from collections.abc import Collection, Mapping
from enum import Enum
from typing import TypeVar

State = TypeVar("State", bound=Enum)


def check_transition(
    legal: Mapping[State, Collection[State]], current: State, target: State, subject: str
) -> None:
    """Fail an assertion unless `legal` lists `target` among the successors of `current`."""
    assert target in legal[current], f"{subject} cannot go from {current.name} to {target.name}"
