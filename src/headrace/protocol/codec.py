"""Encodes and decodes messages, with code that is compiled for each class and version on first use.

Malformed bytes raise ProtocolError and nothing else; a message that does not match its schema raises
EncodeError, which names the field.
"""

import struct
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Final

from headrace.protocol.compiled.decoder import compile_decoder
from headrace.protocol.compiled.encoder import compile_encoder
from headrace.protocol.compiled.source import FIXED
from headrace.protocol.compiled.structs import StructType, struct_named
from headrace.protocol.errors import ProtocolError
from headrace.protocol.fields import Buffer, Field, version_range
from headrace.protocol.primitives import MAX_STRING

BAD_BYTES: Final = (struct.error, IndexError, ValueError)
"""Raised by reading past the end, invalid UTF-8 and our own checks; `protocol_error` translates them."""

BAD_VALUES: Final = (struct.error, AttributeError, TypeError, ValueError, OverflowError)
"""Raised by encoding a value of the wrong type or size."""

Function = Callable[..., Any]


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
        self._decoders: dict[int, Function] = {}
        self._lenient_decoders: dict[int, Function] = {}
        self._encoders: dict[int, Function] = {}
        self._sliced_decoders: dict[int, Function] = {}
        self._sliced_encoders: dict[int, Function] = {}

    def decode(self, body: Buffer, version: int, *, trailing: bool = False) -> Any:
        """Decode the message in `body`; with `trailing`, bytes after it are ignored."""
        decoders = self._lenient_decoders if trailing else self._decoders
        decoder = decoders.get(version) or self._new(
            decoders, version, partial(compile_decoder, trailing=trailing), ProtocolError
        )
        try:
            return decoder(body)
        except BAD_BYTES as error:
            raise protocol_error(self._cls.__name__, version, error) from error

    def encode(self, message: Any, version: int) -> list[Buffer]:
        encoder = self._encoders.get(version) or self._new(
            self._encoders, version, compile_encoder, EncodeError
        )
        try:
            encoded: list[Buffer] = encoder(message)
        except BAD_VALUES as error:
            raise encode_error(self._cls, message, version, error) from error
        return encoded

    def decode_in_slices(
        self, body: Buffer, version: int, max_elements: int, structs: list[Any]
    ) -> Generator[None, None, Any]:
        """Like `decode`, in steps; append all elements that are structs to `structs`."""
        decoder = self._sliced_decoders.get(version) or self._new(
            self._sliced_decoders, version, partial(compile_decoder, sliced=True), ProtocolError
        )
        try:
            return (yield from decoder(body, max_elements, structs))
        except BAD_BYTES as error:
            raise protocol_error(self._cls.__name__, version, error) from error

    def encode_in_slices(
        self, message: Any, version: int, structs: list[Any]
    ) -> Generator[None, None, list[Buffer]]:
        """Like `encode`, in steps; append all elements that are structs to `structs`."""
        encoder = self._sliced_encoders.get(version) or self._new(
            self._sliced_encoders, version, partial(compile_encoder, sliced=True), EncodeError
        )
        try:
            encoded: list[Buffer] = yield from encoder(message, structs)
        except BAD_VALUES as error:
            raise encode_error(self._cls, message, version, error) from error
        return encoded

    def _new(
        self,
        functions: dict[int, Function],
        version: int,
        compile_: Callable[..., Function],
        refusal: type[Exception],
    ) -> Function:
        """Compile the function of a version, and add it to `functions`."""
        if version not in self.versions:
            raise refusal(
                f"{self._cls.__name__} has no v{version}, only v{self.versions[0]} to v{self.versions[-1]}"
            )
        functions[version] = compile_(self._cls, version, flexible=version in self.flexible)
        return functions[version]


def protocol_error(name: str, version: int, error: Exception) -> ProtocolError:
    reason = f"cut short ({error})" if isinstance(error, struct.error | IndexError) else str(error)
    return ProtocolError(f"{name} v{version}: {reason}")


def encode_error(cls: StructType, message: Any, version: int, error: Exception) -> EncodeError:
    fault = _fault(cls, message, version) or f": {error}"
    return EncodeError(f"{cls.__name__}{fault} (v{version})")


def _fault(cls: StructType, value: Any, version: int) -> str | None:
    """Return the first invalid field and the reason, "topics[3].name: ...", or None if all are valid."""
    kind: type = cls  # mypy cannot tell an instance of a metaclass from the metaclass
    if not isinstance(value, kind):
        return f": {value!r:.60} is no {cls.__name__}"
    for field in cls.__fields__:
        if field.exists_in(version):
            fault = _field_fault(field, cls, getattr(value, field.name), version)
            if fault:
                return f".{field.name}{fault}"
    return None


def _field_fault(field: Field, cls: StructType, value: Any, version: int) -> str | None:
    if value is None:
        return None if field.nullable_in(version) else f": is None, which v{version} cannot say"
    if not field.is_array:
        return _value_fault(field, cls, value, version)
    if not hasattr(value, "__len__") or not hasattr(value, "__iter__"):
        return f": {value!r:.60} is no sequence"
    for index, item in enumerate(value):
        fault = _value_fault(field, cls, item, version)
        if fault:
            return f"[{index}]{fault}"
    return None


def _value_fault(field: Field, cls: StructType, value: Any, version: int) -> str | None:
    kind = field.item_kind
    if field.holds_structs:
        return _fault(struct_named(kind, cls), value, version)
    if kind == "string":
        return _string_fault(value)
    if kind == "uuid":
        return None if isinstance(value, bytes) and len(value) == 16 else f": {value!r:.60} is no uuid"
    if kind in FIXED:
        try:
            struct.pack(">" + FIXED[kind][0], value)
        except (struct.error, TypeError, OverflowError) as error:
            return f": {value!r:.60} is no {kind} ({error})"
        return None
    return None if isinstance(value, bytes | bytearray | memoryview) else f": {value!r:.60} is no buffer"


def _string_fault(value: Any) -> str | None:
    if not isinstance(value, str):
        return f": {value!r:.60} is no str"
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        return f": {error}"
    return f": {length} bytes of text, {MAX_STRING} are the most" if length > MAX_STRING else None
