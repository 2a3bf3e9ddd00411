"""The fields of a certificate that brokers need, read from its DER: subject, expiry, alternative names."""

from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from headrace.security.der import (
    OBJECT_IDENTIFIER,
    OCTET_STRING,
    SEQUENCE,
    Element,
    Malformed,
    decode_object_identifier,
    read_sequence,
)

_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_VALIDITY: Final = 3  # serial number, signature algorithm, issuer, validity, subject
_SUBJECT: Final = 4
_UTC_TIME: Final = 0x17
_GENERALIZED_TIME: Final = 0x18
_SUBJECT_ALTERNATIVE_NAME: Final = "2.5.29.17"
_TEXTS: Final = {0x81: "RFC822Name", 0x82: "DNSName", 0x86: "UniformResourceIdentifier"}
_IP_ADDRESS: Final = 0x87


def subject_of(certificate: bytes) -> bytes:
    """Return the DER of the subject's name; Malformed if the bytes are no certificate in DER."""
    return bytes(_fields(certificate)[_SUBJECT].encoded)


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
    for each in _extensions(certificate):
        parts = list(each.children())
        if not parts or parts[0].tag != OBJECT_IDENTIFIER or parts[-1].tag != OCTET_STRING:
            raise Malformed("an extension is not a pair of an identifier and a value")
        if decode_object_identifier(parts[0].content) == _SUBJECT_ALTERNATIVE_NAME:
            return {_name(name) for name in read_sequence(parts[-1].content)}
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


def _extensions(certificate: bytes) -> list[Element]:
    for field in _fields(certificate)[_SUBJECT + 1 :]:
        if field.tag == _EXTENSIONS_TAG:
            found = read_sequence(field.content)
            if any(each.tag != SEQUENCE for each in found):
                raise Malformed("an extension is not a SEQUENCE")
            return found
    return []


def _name(name: Element) -> str:
    value = bytes(name.content)
    if name.tag in _TEXTS:
        return f"{_TEXTS[name.tag]}:{value.decode('utf-8', 'replace')}"
    if name.tag == _IP_ADDRESS and len(value) in {4, 16}:
        return f"IPAddress:{ip_address(value)}"
    return f"{name.tag:#x}:{value.hex()}"
