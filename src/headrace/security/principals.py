"""Principals: the identity of a client, as Kafka writes it: `User:alice`."""

from typing import Final, NamedTuple

from headrace.protocol.schema.default_principal_data import DefaultPrincipalData

USER: Final = "User"
_VERSION: Final = 0
_VERSION_BYTES: Final = 2


class Principal(NamedTuple):
    """Who a client is. Over PLAINTEXT everybody is `User:ANONYMOUS`."""

    name: str
    type: str = USER

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"

    @classmethod
    def parse(cls, text: str) -> "Principal":
        """Return the principal in `TYPE:NAME`; the name may contain colons. ValueError says what is wrong."""
        type_, colon, name = text.partition(":")
        if not colon:
            raise ValueError(f"principal {text!r} has no type: expected TYPE:NAME, such as User:alice")
        return cls(name, type_)

    def encode(self) -> bytes:
        """Return the principal as Kafka's Envelope carries it: two bytes of version, then the fields."""
        data = DefaultPrincipalData(type=self.type, name=self.name, token_authenticated=False)
        return _VERSION.to_bytes(_VERSION_BYTES, "big") + b"".join(data.encode(_VERSION))

    @classmethod
    def decode(cls, data: bytes) -> "Principal":
        found = DefaultPrincipalData.decode(memoryview(data)[_VERSION_BYTES:], _VERSION)
        return cls(found.name, found.type)


ANONYMOUS: Final = Principal("ANONYMOUS")
