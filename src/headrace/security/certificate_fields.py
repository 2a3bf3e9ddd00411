"""The fields of a certificate that brokers need, read from its DER: subject, expiry, alternative names.

The subject is written as Java writes it, X500Principal.getName(): `CN=Ann,OU=Sales,O=Headrace`. This is
RFC 2253 as Java implements it: the last part of the subject comes first, and an attribute without a
name in RFC 2253 is written with its object identifier and its value in hexadecimal DER:
`1.2.840.113549.1.9.1=#160d616e6e406578616d706c652e`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NamedTuple

INTEGER: Final = 0x02
OCTET_STRING: Final = 0x04
OBJECT_IDENTIFIER: Final = 0x06
SEQUENCE: Final = 0x30
SET: Final = 0x31
_MOST_LENGTH_BYTES: Final = 4
_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_VALIDITY: Final = 3  # serial number, signature algorithm, issuer, validity, subject
_SUBJECT: Final = 4
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_SUBJECT_ALTERNATIVE_NAME: Final = "2.5.29.17"
_TEXTS: Final = {0x81: "RFC822Name", 0x82: "DNSName", 0x86: "UniformResourceIdentifier"}
_IP_ADDRESS: Final = 0x87
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


class Malformed(ValueError):
    """The bytes are not DER, or not the structure that was expected."""


class Element(NamedTuple):
    """One element: its tag, its content, and all of its bytes including tag and length."""

    tag: int
    content: memoryview
    encoded: memoryview

    def children(self) -> Iterator["Element"]:
        rest = self.content
        while rest:
            child = read(rest)
            yield child
            rest = rest[len(child.encoded) :]


def read(data: memoryview) -> Element:
    """Return the element at the start of `data`; Malformed if there is none or if it is cut off."""
    if len(data) < 2:
        raise Malformed(f"{len(data)} bytes are too few for an element")
    tag, size, start = data[0], data[1], 2
    if tag & 0x1F == 0x1F:
        raise Malformed(f"tag {tag:#x} has more than one byte, which no certificate or key uses")
    if size >= 0x80:  # the length follows, in as many bytes
        count = size & 0x7F
        if not 1 <= count <= _MOST_LENGTH_BYTES or len(data) < 2 + count:
            raise Malformed(f"a length of {count} bytes is unsupported, or cut off")
        size, start = int.from_bytes(data[2 : 2 + count], "big"), 2 + count
    if size > len(data) - start:
        raise Malformed(f"an element of {size:,} bytes is cut off after {len(data) - start:,}")
    return Element(tag, data[start : start + size], data[: start + size])


def read_sequence(data: memoryview) -> list[Element]:
    """Return the elements of the SEQUENCE at the start of `data`."""
    found = read(data)
    if found.tag != SEQUENCE:
        raise Malformed(f"expected a SEQUENCE, found tag {found.tag:#x}")
    return list(found.children())


def decode_object_identifier(content: memoryview) -> str:
    """Return an OBJECT IDENTIFIER in dotted notation, such as 2.5.4.3."""
    numbers, value = [], 0
    for byte in content:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    if not numbers or content[-1] >= 0x80:
        raise Malformed("an object identifier is empty or cut off")
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def subject_name(certificate: bytes) -> str:
    """Return the name of a certificate's subject; Malformed if the bytes are no certificate in DER."""
    return distinguished_name(bytes(_fields(certificate)[_SUBJECT].encoded))


def distinguished_name(name: bytes) -> str:
    """Return an X.500 name, in DER, as text."""
    parts = []
    for part in reversed(read_sequence(memoryview(name))):
        if part.tag != SET:
            raise Malformed(f"expected a SET of attributes, found tag {part.tag:#x}")
        parts.append("+".join(map(_attribute, part.children())))
    return ",".join(parts)


def _attribute(attribute: Element) -> str:
    pair = list(attribute.children()) if attribute.tag == SEQUENCE else []
    if len(pair) != 2 or pair[0].tag != OBJECT_IDENTIFIER:
        raise Malformed("an attribute is not a pair of a type and a value")
    identifier, value = decode_object_identifier(pair[0].content), pair[1]
    name = _NAMES.get(identifier)
    if name is None or value.tag not in _STRING_TAGS:
        return f"{name or identifier}=#{value.encoded.hex()}"
    text = str(value.content, "utf-8", "replace").translate(_ESCAPED)
    inner = text.strip(" \r")
    before, _, after = text.partition(inner) if inner else (text, "", "")
    return f"{name}={''.join(map(_escaped, before))}{inner}{''.join(map(_escaped, after))}"


def _escaped(character: str) -> str:
    return f"\\{character}"


def not_valid_after(certificate: bytes) -> datetime:
    """Return when the certificate expires; Malformed if the bytes are no certificate in DER."""
    times = list(_fields(certificate)[_VALIDITY].children())
    if len(times) != 2 or times[1].tag not in {_UTC_TIME, _GENERALIZED_TIME}:
        raise Malformed("a validity is not a pair of times")
    text = bytes(times[1].content).decode("ascii", "replace")
    if times[1].tag == _UTC_TIME:  # RFC 5280: years from 50 are those of the last century
        text = f"{'19' if text >= '50' else '20'}{text}"
    try:
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except ValueError as error:
        raise Malformed(f"{text!r:.40} is no time") from error


def alternative_names(certificate: bytes) -> set[str]:
    """Return the subject alternative names, such as `DNSName:one.example.com` and `IPAddress:127.0.0.1`."""
    signed = _fields(certificate)[_SUBJECT + 1 :]
    extensions = next((field for field in signed if field.tag == _EXTENSIONS_TAG), None)
    for extension in [] if extensions is None else read_sequence(extensions.content):
        parts = list(extension.children()) if extension.tag == SEQUENCE else []
        if not parts or parts[0].tag != OBJECT_IDENTIFIER or parts[-1].tag != OCTET_STRING:
            raise Malformed("an extension is not a pair of an identifier and a value")
        if decode_object_identifier(parts[0].content) == _SUBJECT_ALTERNATIVE_NAME:
            return {_alternative_name(name) for name in read_sequence(parts[-1].content)}
    return set()


def _fields(certificate: bytes) -> list[Element]:
    """Return the fields of the signed part, without the version, which older certificates lack."""
    signed = read_sequence(memoryview(certificate))
    fields = read_sequence(signed[0].encoded) if signed else []
    if fields and fields[0].tag == _VERSION_TAG:
        del fields[0]
    if len(fields) <= _SUBJECT:
        raise Malformed("a certificate without a subject")
    return fields


def _alternative_name(name: Element) -> str:
    value = bytes(name.content)
    if name.tag in _TEXTS:
        return f"{_TEXTS[name.tag]}:{value.decode('utf-8', 'replace')}"
    if name.tag == _IP_ADDRESS and len(value) in {4, 16}:
        return f"IPAddress:{ip_address(value)}"
    return f"{name.tag:#x}:{value.hex()}"
