"""JKS stores for tests, written as Java writes them."""

import os
from collections.abc import Sequence
from hashlib import sha1

Entry = tuple[int, bytes]  # tag and what follows the creation time


def store(entries: Sequence[Entry], password: str, *, version: int = 2) -> bytes:
    body = number(0xFEEDFEED) + number(version) + number(len(entries))
    for at, (tag, content) in enumerate(entries):
        body += number(tag) + text(f"alias-{at}") + (1_700_000_000_000).to_bytes(8, "big") + content
    return body + sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body).digest()


def trusted(certificate: bytes, *, version: int = 2) -> Entry:
    return 2, encoded_certificate(certificate, version)


def private_key(pkcs8: bytes, password: str, chain: Sequence[bytes], *, version: int = 2) -> Entry:
    protected = protect(pkcs8, password)
    certificates = b"".join(encoded_certificate(each, version) for each in chain)
    return 1, number(len(protected)) + protected + number(len(chain)) + certificates


def encoded_certificate(certificate: bytes, version: int) -> bytes:
    return (text("X.509") if version == 2 else b"") + number(len(certificate)) + certificate


def protect(pkcs8: bytes, password: str) -> bytes:
    """Return an EncryptedPrivateKeyInfo with Java's own key protection."""
    secret, salt = password.encode("utf-16-be"), os.urandom(20)
    stream, block = b"", salt
    while len(stream) < len(pkcs8):
        block = sha1(secret + block).digest()
        stream += block
    encrypted = bytes(one ^ other for one, other in zip(pkcs8, stream, strict=False))
    algorithm = element(0x30, element(0x06, bytes.fromhex("2b060104012a02110101")) + element(0x05, b""))
    content = element(0x04, salt + encrypted + sha1(secret + pkcs8).digest())
    return element(0x30, algorithm + content)


def element(tag: int, content: bytes) -> bytes:
    """Return one element of DER."""
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    return bytes([tag, 0x82]) + size.to_bytes(2, "big") + content


def text(value: str) -> bytes:
    encoded = value.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")
