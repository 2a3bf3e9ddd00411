"""Requests, responses and other top-level messages: structs with versions."""

from collections.abc import Generator
from typing import Any, ClassVar, Self

from headrace.protocol.codec import Codec
from headrace.protocol.compiled.structs import Struct
from headrace.protocol.fields import ALL_DEFAULTS, ZERO_UUID, Buffer, field

__all__ = ["ALL_DEFAULTS", "ZERO_UUID", "Buffer", "Message", "Struct", "field"]


class Message(Struct):
    """A top-level struct: one class for all versions; the version is an argument.

    MetadataRequest.decode(body, version=12).encode(version=4)
    """

    __api_key__: ClassVar[int | None]
    __codec__: ClassVar[Codec]

    def __init_subclass__(cls, *, versions: str, flexible: str, key: int | None = None, **rest: Any) -> None:
        """Read the class arguments: `class X(Message, key=3, versions="0-13", ...)`."""
        super().__init_subclass__(**rest)
        cls.__api_key__ = key
        cls.__codec__ = Codec(cls, versions, flexible)

    def encode(self, version: int) -> list[Buffer]:
        """Encode the body as buffers to be sent in order; records are not copied."""
        return self.__codec__.encode(self, version)

    @classmethod
    def decode(cls, body: Buffer, version: int) -> Self:
        """Decode the message in `body`. Records are views of `body`; the rest is copied."""
        message: Self = cls.__codec__.decode(body, version)
        return message

    def encode_in_slices(
        self, version: int, structs: list[Any] | None = None
    ) -> Generator[None, None, list[Buffer]]:
        """Encode a large message in steps: the caller may do other work in between.

        All elements that are structs are appended to `structs`, so that the message can be freed in steps.
        """
        return self.__codec__.encode_in_slices(self, version, [] if structs is None else structs)

    @classmethod
    def decode_in_slices(
        cls, body: Buffer, version: int, max_elements: int, structs: list[Any] | None = None
    ) -> Generator[None, None, Self]:
        """Like `decode`, in steps; raise ProtocolError if there are more than `max_elements`."""
        structs = [] if structs is None else structs
        return cls.__codec__.decode_in_slices(body, version, max_elements, structs)
