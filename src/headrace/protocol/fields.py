"""Field declarations of message classes: a kind, the versions that have it, and a default."""

from enum import Enum, auto
from typing import Any, Final

Buffer = bytes | bytearray | memoryview

NEWEST: Final = 1 << 15
"""Greater than every version: versions are int16 on the wire."""

ZERO_UUID: Final = bytes(16)


class _Default(Enum):
    """Marks a default that is not a plain value."""

    REQUIRED = auto()
    ALL_DEFAULTS = auto()  # of a struct field: that struct, with each of its own fields at its default


REQUIRED: Final = _Default.REQUIRED
ALL_DEFAULTS: Final = _Default.ALL_DEFAULTS

# Kafka's default for a field without one in its schema.
IMPLIED_DEFAULTS: Final[dict[str, Any]] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
    "records": b"",
}


class Field:
    """One field of a message, for all versions. Hundreds are created at import, so it only stores."""

    __slots__ = ("default", "flexible", "kind", "name", "nullable", "tag", "versions")

    name: str

    def __init__(
        self, kind: str, versions: str, *, nullable: str, flexible: str, tag: int | None, default: Any
    ) -> None:
        self.kind = kind
        self.versions = versions
        self.nullable = nullable
        self.flexible = flexible
        self.tag = tag
        self.default = default

    @property
    def is_array(self) -> bool:
        return self.kind.startswith("[]")

    @property
    def item_kind(self) -> str:
        """Return the kind of the field or of its array's elements: "int32", or the name of a struct."""
        return self.kind.removeprefix("[]")

    @property
    def holds_structs(self) -> bool:
        return self.item_kind[0].isupper()

    def exists_in(self, version: int) -> bool:
        return version in version_range(self.versions)

    def nullable_in(self, version: int) -> bool:
        return version in version_range(self.nullable)

    def flexible_in(self, version: int, message_is_flexible: bool) -> bool:
        """Return whether lengths are varints, by default as in the whole message."""
        return message_is_flexible and version in version_range(self.flexible)


def field(
    kind: str,
    versions: str,
    *,
    nullable: str = "none",
    flexible: str = "0+",
    tag: int | None = None,
    default: Any = REQUIRED,
) -> Any:
    """Declare one field of a message class.

    topics: Sequence[Topic] | None = field("[]Topic", "1-7", nullable="2-7", default=())

    Without a default it must be given when a message is made. In versions that do not have the
    field it is left out when encoding, and has its default after decoding.
    """
    return Field(kind, versions, nullable=nullable, flexible=flexible, tag=tag, default=default)


def version_range(text: str) -> range:
    """Parse versions as Kafka writes them: "3", "1-7", "6+" or "none"."""
    if text == "none":
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), NEWEST)
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)
