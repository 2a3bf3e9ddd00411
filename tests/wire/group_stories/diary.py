"""What a worker writes down as it happens, one line of JSON each."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wire.group_stories.reading import Place


@dataclass(frozen=True, slots=True)
class Entry:
    """`what` is "assigned", "revoked", "read", "committed", "refused" (a commit) or "closed"."""

    what: str
    places: Sequence[Place] = ()
    offset: int = -1  # of what was read
    text: str = ""  # what was read, or why it was refused

    def to_line(self) -> bytes:
        return json.dumps([self.what, self.places, self.offset, self.text]).encode() + b"\n"


def read_diary(path: Path) -> list[Entry]:
    """Every entry so far."""
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    whole = [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [
        Entry(what, [Place(*place) for place in places], offset, text) for what, places, offset, text in whole
    ]
