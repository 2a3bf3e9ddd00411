"""Where processes run: this machine's own network, or a host of its own in a network that can be cut."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Place:
    """An address, and the command that runs another one there."""

    host: str = "127.0.0.1"
    inside: Sequence[str] = ()


HERE: Final = Place()
