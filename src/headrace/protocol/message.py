"""Requests, responses and data that travel whole: structs that know their versions."""

from collections.abc import Generator
from typing import Any, ClassVar, Self

from headrace.protocol.codec import Codec
from headrace.protocol.fields import ALL_DEFAULTS, ZERO_UUID, Buffer, field
from headrace.protocol.structs import Struct

__all__ = ["ALL_DEFAULTS", "ZERO_UUID", "Buffer", "Message", "Struct", "field"]


class Message(Struct):
    """A struct with a life of its own: one class for all its versions, the version an argument.

    MetadataRequest.decode(body, version=12).encode(version=4)
    """

    __api_key__: ClassVar[int | None]
    __codec__: ClassVar[Codec]

    def __init_subclass__(cls, *, versions: str, flexible: str, key: int | None = None, **rest: Any) -> None:
        """Take what stands behind the base class: `class X(Message, key=3, versions="0-13", ...)`."""
        super().__init_subclass__(**rest)
        cls.__api_key__ = key
        cls.__codec__ = Codec(cls, versions, flexible)

    def encode(self, version: int) -> list[Buffer]:
        """The body in one version, as buffers to be sent one after the other; records are not copied."""
        return self.__codec__.encode(self, version)

    @classmethod
    def decode(cls, body: Buffer, version: int) -> Self:
        """The message that `body` holds, all of it. Records stay slices of `body`; the rest is copied."""
        message: Self = cls.__codec__.decode(body, version)
        return message

    def encode_in_slices(self, version: int) -> Generator[None, None, list[Buffer]]:
        """The same in steps, for a large message: who takes them may do other things in between."""
        return self.__codec__.encode_in_slices(self, version)

    @classmethod
    def decode_in_slices(cls, body: Buffer, version: int, max_elements: int) -> Generator[None, None, Self]:
        """As `decode`, in steps; ProtocolError if there are more than `max_elements`."""
        return cls.__codec__.decode_in_slices(body, version, max_elements)
