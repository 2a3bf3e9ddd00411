"""JKS: the keystores and truststores of Java before Java 9, and of `keytool -storetype JKS`.

All numbers are big-endian; a string is two bytes of length, then UTF-8:

    magic FEEDFEED (4), version 1 or 2 (4), number of entries (4), entries, SHA-1 digest (20)
    entry:        tag (4), alias (string), creation time (8), then by tag
      1 private key:  length (4), EncryptedPrivateKeyInfo in DER, length of the chain (4), certificates
      2 trusted:      certificate
    certificate:  in version 2 its type (string, "X.509"), length (4), DER

The digest is of the password, the words "Mighty Aphrodite", and all bytes before the digest. Java encrypts
a key with SHA-1 as a stream cipher, under object identifier 1.3.6.1.4.1.42.2.17.1.1.
"""

import hmac
from dataclasses import dataclass, field
from hashlib import sha1
from typing import Final

from headrace.security.der import OCTET_STRING, Malformed, decode_object_identifier, read_sequence

MAGIC: Final = 0xFEEDFEED
_VERSIONS: Final = (1, 2)
_PRIVATE_KEY: Final = 1
_TRUSTED_CERTIFICATE: Final = 2
_DIGEST_BYTES: Final = 20
_SMALLEST_ENTRY: Final = 18  # tag, empty alias, creation time, empty certificate of version 1
_SMALLEST_CERTIFICATE: Final = 4
_LONGEST_CHAIN: Final = 100
_JAVA_KEY_PROTECTION: Final = "1.3.6.1.4.1.42.2.17.1.1"
_WHITENER: Final = b"Mighty Aphrodite"


class DamagedJks(Exception):
    """The bytes are not a complete JKS store; the message says what is wrong with them."""


class WrongJksPassword(Exception):
    """The password is not that of the store or of the key, or the bytes were changed."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key as the store holds it, and its certificate chain in DER."""

    protected: bytes = field(repr=False)
    chain: tuple[bytes, ...]

    def decrypt(self, password: str) -> bytes:
        """Return the key as PKCS #8 in DER; WrongJksPassword if the key has another password."""
        salt_and_key = _encrypted_key(self.protected)
        secret = password.encode("utf-16-be", "surrogatepass")
        salt, encrypted = salt_and_key[:_DIGEST_BYTES], salt_and_key[_DIGEST_BYTES:-_DIGEST_BYTES]
        key = _exclusive_or(encrypted, _key_stream(secret, salt, len(encrypted)))
        if not hmac.compare_digest(_sha1(secret, key), salt_and_key[-_DIGEST_BYTES:]):
            raise WrongJksPassword
        return key


@dataclass(frozen=True, slots=True)
class Jks:
    """The entries of a store: private keys in the order of the file, and trusted certificates in DER."""

    keys: tuple[JksKey, ...]
    trusted: tuple[bytes, ...]


def parse_jks(data: bytes, password: str | None) -> Jks:
    """Return the entries of a store; without a password its digest is not verified, as in Java.

    DamagedJks: the bytes are no complete store. WrongJksPassword: the digest is another one.
    """
    store = _Reader(memoryview(data)[: max(0, len(data) - _DIGEST_BYTES)]).store()
    if password is not None:
        secret = password.encode("utf-16-be", "surrogatepass")
        digest = _sha1(secret, _WHITENER, memoryview(data)[:-_DIGEST_BYTES])
        if not hmac.compare_digest(digest, data[-_DIGEST_BYTES:]):
            raise WrongJksPassword
    return store


class _Reader:
    """Reads a store, all but its digest, and checks every length against what is left before it is used."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._version = 0

    def store(self) -> Jks:
        magic, self._version = self._number(4), self._number(4)
        if magic != MAGIC or self._version not in _VERSIONS:
            raise DamagedJks(f"it begins with {magic:#010x} and version {self._version}")
        keys: list[JksKey] = []
        trusted: list[bytes] = []
        for _ in range(self._count("entries", _SMALLEST_ENTRY)):
            tag = self._number(4)
            self._take(self._number(2))  # alias
            self._take(8)  # creation time
            if tag == _PRIVATE_KEY:
                keys.append(self._key())
            elif tag == _TRUSTED_CERTIFICATE:
                trusted.append(self._certificate())
            else:
                raise DamagedJks(f"an entry has the unknown tag {tag}")
        if self._data:
            raise DamagedJks(f"{len(self._data):,} bytes follow its last entry")
        return Jks(tuple(keys), tuple(trusted))

    def _key(self) -> JksKey:
        protected = bytes(self._take(self._number(4)))
        count = self._count("certificates in a chain", _SMALLEST_CERTIFICATE)
        if count > _LONGEST_CHAIN:
            raise DamagedJks(f"a certificate chain has {count:,} certificates, more than {_LONGEST_CHAIN}")
        return JksKey(protected, tuple(self._certificate() for _ in range(count)))

    def _certificate(self) -> bytes:
        if self._version > 1:
            kind = bytes(self._take(self._number(2)))
            if kind not in {b"X.509", b"X509"}:
                raise DamagedJks(f"a certificate is of type {kind[:20]!r}, not X.509")
        return bytes(self._take(self._number(4)))

    def _count(self, what: str, smallest: int) -> int:
        count = self._number(4)
        if count > len(self._data) // smallest:
            raise DamagedJks(f"{count:,} {what} do not fit into the remaining {len(self._data):,} bytes")
        return count

    def _number(self, size: int) -> int:
        return int.from_bytes(self._take(size), "big")

    def _take(self, size: int) -> memoryview:
        if size > len(self._data):
            raise DamagedJks(f"{size:,} bytes are missing where only {len(self._data):,} are left")
        taken, self._data = self._data[:size], self._data[size:]
        return taken


def _encrypted_key(protected: bytes) -> bytes:
    """Return salt, encrypted key and digest out of an EncryptedPrivateKeyInfo."""
    try:
        algorithm, encrypted = read_sequence(memoryview(protected))
        name = decode_object_identifier(read_sequence(algorithm.encoded)[0].content)
    except (Malformed, ValueError, IndexError) as error:
        raise DamagedJks("a private key in it is not in DER") from error
    if name != _JAVA_KEY_PROTECTION:
        raise DamagedJks(f"a private key in it is encrypted with an unsupported algorithm, {name}")
    if encrypted.tag != OCTET_STRING or len(encrypted.content) <= 2 * _DIGEST_BYTES:
        raise DamagedJks("a private key in it is too short")
    return bytes(encrypted.content)


def _key_stream(secret: bytes, salt: bytes, size: int) -> bytes:
    stream, block = bytearray(), salt
    while len(stream) < size:
        block = _sha1(secret, block)
        stream += block
    return bytes(stream[:size])


def _exclusive_or(left: bytes, right: bytes) -> bytes:
    return (int.from_bytes(left, "big") ^ int.from_bytes(right, "big")).to_bytes(len(left), "big")


def _sha1(*parts: bytes | memoryview) -> bytes:
    digest = sha1(usedforsecurity=False)  # the format demands it, and it has to work under FIPS
    for part in parts:
        digest.update(part)
    return digest.digest()
