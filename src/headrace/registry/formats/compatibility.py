"""Whether a schema may follow earlier ones: the seven levels, whatever the format."""

from collections.abc import Sequence
from enum import StrEnum

from headrace.registry.formats.schema import Parsed


class Level(StrEnum):
    """Who must be able to read what."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"


def check(new: Parsed, olds: Sequence[Parsed], level: Level, *, versions: Sequence[int] = ()) -> list[str]:
    """What keeps `new` from following `olds` (the oldest first); nothing if it may.

    The messages are about one of `olds`, the newest that does not fit. `versions` are theirs in
    the subject: with them, a message says which it was.
    """
    raise NotImplementedError
