"""The base of the codecs: what all formats have in common, and their errors."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class BadValue(ValueError):
    """A value cannot be encoded or decoded; `index` says which of several values it is."""

    def __init__(self, message: str, index: int = 0) -> None:
        super().__init__(message)
        self.index = index


class TooCostly(BadValue):
    """Encoding or decoding a value by its schema takes too much CPU time or memory."""


def dotted(path: Sequence[str | int]) -> str:
    """Return the path to a field as text: lines[2].amount."""
    text = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path)
    return text.removeprefix(".")


class Codec(ABC):
    """Encodes and decodes values of one schema."""

    format: str  # avro, jsonschema or protobuf

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the record or message in the schema, or an empty string."""

    @abstractmethod
    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value; raise BadValue if it does not fit the schema.

        A value of Avro may be in Avro's JSON encoding, which `decode` returns if it is `tagged`.
        """

    def encode_plain(self, value: Any, message: str = "") -> bytes:
        """Return the bytes of JSON that `decode` returned, not `tagged`; raise BadValue if it does not fit.

        `message` is the full name of a Protobuf message; by default it is the first of the schema.
        """
        del message
        return self.encode(value)

    def message_name(self, data: bytes) -> str:
        """Return the full name of the Protobuf message; empty in the other formats."""
        del data
        return ""

    @abstractmethod
    def decode(self, data: bytes, *, tagged: bool = False, numbers: bool = False) -> Any:
        """Return the value as JSON, or with `tagged` in the format's own JSON encoding; raise BadValue.

        With `numbers`, decimals and long integers are numbers, to compare with, where JSON has text.
        """

    def is_linear(self, data: bytes) -> bool:
        """Return whether decoding takes time and memory in proportion to the number of bytes."""
        del data
        return True
