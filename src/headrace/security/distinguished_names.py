"""The subject of a certificate as Java writes it, X500Principal.getName(): `CN=Ann,OU=Sales,O=Headrace`.

This is RFC 2253 as Java implements it: the last part of the subject comes first, and an attribute without a
name in RFC 2253 is written with its object identifier and its value in hexadecimal DER:
`1.2.840.113549.1.9.1=#160d616e6e406578616d706c652e`.
"""

from typing import Final

from headrace.security.certificate_fields import subject_of
from headrace.security.der import (
    OBJECT_IDENTIFIER,
    SEQUENCE,
    SET,
    Element,
    Malformed,
    decode_object_identifier,
    read_sequence,
)

_NAMES: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRING_TAGS: Final = frozenset(
    {
        0x0C,  # UTF8String
        0x13,  # PrintableString
        0x14,  # T61String
        0x16,  # IA5String
        0x1B,  # GeneralString
        0x1E,  # BMPString
    }
)
_ESCAPED: Final = {ord(each): f"\\{each}" for each in ',=+<>#;"\\'} | {0: "\\00"}


def subject_name(certificate: bytes) -> str:
    """Return the name of a certificate's subject; Malformed if the bytes are no certificate in DER."""
    return distinguished_name(subject_of(certificate))


def distinguished_name(name: bytes) -> str:
    """Return an X.500 name, in DER, as text."""
    parts = read_sequence(memoryview(name))
    return ",".join("+".join(_attributes(part)) for part in reversed(parts))


def _attributes(part: Element) -> list[str]:
    if part.tag != SET:
        raise Malformed(f"expected a SET of attributes, found tag {part.tag:#x}")
    return [_attribute(each) for each in part.children()]


def _attribute(attribute: Element) -> str:
    found = list(attribute.children()) if attribute.tag == SEQUENCE else []
    if len(found) != 2 or found[0].tag != OBJECT_IDENTIFIER:
        raise Malformed("an attribute is not a pair of a type and a value")
    identifier, value = decode_object_identifier(found[0].content), found[1]
    name = _NAMES.get(identifier)
    if name is None or value.tag not in _STRING_TAGS:
        return f"{name or identifier}=#{value.encoded.hex()}"
    return f"{name}={_escaped(_text(value))}"


def _text(value: Element) -> str:
    return str(value.content, "utf-8", "replace")


def _escaped(text: str) -> str:
    text = text.translate(_ESCAPED)
    inner = text.strip(" \r")
    if not inner:
        return "".join(f"\\{each}" for each in text)
    before, _, after = text.partition(inner)
    return "".join(f"\\{each}" for each in before) + inner + "".join(f"\\{each}" for each in after)
