"""Encodes and decodes messages, with code that is compiled for each class and version on first use.

Malformed bytes raise ProtocolError and nothing else; a message that does not match its schema raises
EncodeError, which names the field.
"""

import struct
from collections.abc import Callable, Generator
from typing import Any, Final

from headrace.protocol.compiled.decoder import compile_decoder, compile_sliced_decoder
from headrace.protocol.compiled.encode_errors import explain
from headrace.protocol.compiled.encoder import compile_encoder, compile_sliced_encoder
from headrace.protocol.compiled.structs import StructType
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer, version_range

BAD_BYTES: Final = (struct.error, IndexError, ValueError)
"""Raised by reading past the end, invalid UTF-8 and our own checks; `protocol_error` translates them."""

BAD_VALUES: Final = (struct.error, AttributeError, TypeError, ValueError, OverflowError)
"""Raised by encoding a value of the wrong type or size."""


class EncodeError(ValueError):
    """One of our messages has a value that its schema does not allow: a bug on our side."""


class Codec:
    """The compiled functions of one message class, by version."""

    __slots__ = (
        "_cls",
        "_decoders",
        "_encoders",
        "_lenient_decoders",
        "_sliced_decoders",
        "_sliced_encoders",
        "flexible",
        "versions",
    )

    def __init__(self, cls: StructType, versions: str, flexible: str) -> None:
        self._cls = cls
        self.flexible = version_range(flexible)
        self.versions = version_range(versions)
        self._decoders: dict[int, Callable[[Buffer], Any]] = {}
        self._lenient_decoders: dict[int, Callable[[Buffer], Any]] = {}
        self._encoders: dict[int, Callable[[Any], list[Buffer]]] = {}
        self._sliced_decoders: dict[int, Callable[[Buffer, int, list[Any]], Generator[None, None, Any]]] = {}
        self._sliced_encoders: dict[int, Callable[[Any, list[Any]], Generator[None, None, list[Buffer]]]] = {}

    def decode(self, body: Buffer, version: int, *, trailing: bool = False) -> Any:
        """Decode the message in `body`; with `trailing`, bytes after it are ignored."""
        decoders = self._lenient_decoders if trailing else self._decoders
        decoder = decoders.get(version) or self._new_decoder(version, trailing)
        try:
            return decoder(body)
        except BAD_BYTES as error:
            raise protocol_error(self._cls.__name__, version, error) from error

    def encode(self, message: Any, version: int) -> list[Buffer]:
        encoder = self._encoders.get(version) or self._new_encoder(version)
        try:
            return encoder(message)
        except BAD_VALUES as error:
            raise encode_error(self._cls, message, version, error) from error

    def decode_in_slices(
        self, body: Buffer, version: int, max_elements: int, structs: list[Any]
    ) -> Generator[None, None, Any]:
        """Like `decode`, in steps; append all elements that are structs to `structs`."""
        self._check_decodes(version)
        decoder = self._sliced_decoders.get(version)
        if decoder is None:
            decoder = compile_sliced_decoder(self._cls, version, flexible=version in self.flexible)
            self._sliced_decoders[version] = decoder
        try:
            return (yield from decoder(body, max_elements, structs))
        except BAD_BYTES as error:
            raise protocol_error(self._cls.__name__, version, error) from error

    def encode_in_slices(
        self, message: Any, version: int, structs: list[Any]
    ) -> Generator[None, None, list[Buffer]]:
        """Like `encode`, in steps; append all elements that are structs to `structs`."""
        self._check_encodes(version)
        encoder = self._sliced_encoders.get(version)
        if encoder is None:
            encoder = compile_sliced_encoder(self._cls, version, flexible=version in self.flexible)
            self._sliced_encoders[version] = encoder
        try:
            return (yield from encoder(message, structs))
        except BAD_VALUES as error:
            raise encode_error(self._cls, message, version, error) from error

    def _check_decodes(self, version: int) -> None:
        if version not in self.versions:
            raise ProtocolError(self._no_such(version))

    def _check_encodes(self, version: int) -> None:
        if version not in self.versions:
            raise EncodeError(self._no_such(version))

    def _new_decoder(self, version: int, trailing: bool) -> Callable[[Buffer], Any]:
        self._check_decodes(version)
        flexible = version in self.flexible
        decoder = compile_decoder(self._cls, version, flexible=flexible, trailing=trailing)
        (self._lenient_decoders if trailing else self._decoders)[version] = decoder
        return decoder

    def _new_encoder(self, version: int) -> Callable[[Any], list[Buffer]]:
        self._check_encodes(version)
        flexible = version in self.flexible
        self._encoders[version] = compile_encoder(self._cls, version, flexible=flexible)
        return self._encoders[version]

    def _no_such(self, version: int) -> str:
        return f"{self._cls.__name__} has no v{version}, only v{self.versions[0]} to v{self.versions[-1]}"


def protocol_error(name: str, version: int, error: Exception) -> ProtocolError:
    reason = f"cut short ({error})" if isinstance(error, struct.error | IndexError) else str(error)
    return ProtocolError(f"{name} v{version}: {reason}")


def encode_error(cls: StructType, message: Any, version: int, error: Exception) -> EncodeError:
    fault = explain(cls, message, version) or f": {error}"
    return EncodeError(f"{cls.__name__}{fault} (v{version})")
