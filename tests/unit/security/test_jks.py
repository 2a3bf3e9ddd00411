"""Stores in JKS: sizes that lie, other passwords, both versions. test_stores.py has stores by keytool."""

import pytest

from headrace.security.jks import DamagedJks, WrongJksPassword, parse_jks
from support.jks import element, encoded_certificate, number, private_key, store, text, trusted

CHAIN = (b"leaf", b"issuer")


@pytest.mark.parametrize("version", [1, 2])
def test_keys_and_trusted_certificates_are_told_apart(version: int) -> None:
    entries = [
        trusted(b"first", version=version),
        private_key(b"the key" * 20, "key password", CHAIN, version=version),
        trusted(b"second", version=version),
    ]

    found = parse_jks(store(entries, "pässword", version=version), "pässword")

    assert found.trusted == (b"first", b"second")
    (key,) = found.keys
    assert key.chain == CHAIN
    assert key.decrypt("key password") == b"the key" * 20
    assert "protected" not in repr(key)


def test_the_password_of_a_store_and_of_a_key_are_verified() -> None:
    data = store([private_key(b"key", "one", CHAIN)], "two")

    with pytest.raises(WrongJksPassword):
        parse_jks(data, "one")
    with pytest.raises(WrongJksPassword):
        parse_jks(data, "")
    with pytest.raises(WrongJksPassword):
        parse_jks(data, "two").keys[0].decrypt("two")


def test_without_a_password_the_digest_is_not_verified() -> None:
    assert parse_jks(store([trusted(b"one")], "secret"), None).trusted == (b"one",)


def test_a_changed_byte_is_found_by_the_digest() -> None:
    data = store([trusted(b"certificate")], "secret").replace(b"certificate", b"certifiCate")

    with pytest.raises(WrongJksPassword):
        parse_jks(data, "secret")


HEADER = number(0xFEEDFEED) + number(2)
ENTRY = text("a") + bytes(8)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "missing"),
        (number(0xFEEDFEED), "missing"),
        (number(0xFEEDFEED) + number(3) + number(0), "version 3"),
        (HEADER + number(0xFFFFFFFF), "4,294,967,295 entries do not fit into the remaining 0 bytes"),
        (HEADER + number(1_000_000) + bytes(18 * 1000), "1,000,000 entries do not fit"),
        (HEADER + number(1) + number(3) + ENTRY + bytes(20), "unknown tag 3"),
        (HEADER + number(1) + number(2) + text("x" * 65_535)[:40], "65,535 bytes are missing"),
        (HEADER + number(1) + number(1) + ENTRY + number(0x7FFFFFFF), "2,147,483,647 bytes are missing"),
        (
            HEADER + number(1) + number(1) + ENTRY + number(0) + number(0x7FFFFFFF),
            "2,147,483,647 certificates in a chain do not fit",
        ),
        (
            HEADER + number(1) + number(1) + ENTRY + number(0) + number(101) + bytes(101 * 11),
            "101 certificates, more than 100",
        ),
        (
            HEADER + number(1) + number(2) + ENTRY + text("X.509") + number(0xFFFFFFFF),
            "4,294,967,295 bytes are missing",
        ),
        (HEADER + number(1) + number(2) + ENTRY + text("PGP") + number(0), "type b'PGP', not X.509"),
        (HEADER + number(0) + b"more", "4 bytes follow its last entry"),
    ],
)
def test_a_size_is_checked_before_it_is_used(body: bytes, says: str) -> None:
    with pytest.raises(DamagedJks, match=says):
        parse_jks(body + bytes(20), "secret")


@pytest.mark.parametrize(
    ("protected", "says"),
    [
        (b"", "not in DER"),
        (b"\x30\x84\xff\xff\xff\xff", "not in DER"),
        (element(0x30, b""), "not in DER"),
        (element(0x30, element(0x30, b"") + element(4, bytes(50))), "not in DER"),
        (
            element(0x30, element(0x30, element(6, b"\x2a\x03")) + element(4, bytes(50))),
            r"unsupported algorithm, 1\.2\.3",
        ),
        (
            element(
                0x30, element(0x30, element(6, bytes.fromhex("2b060104012a02110101"))) + element(4, bytes(40))
            ),
            "too short",
        ),
    ],
)
def test_a_protected_key_that_is_none(protected: bytes, says: str) -> None:
    entry = number(len(protected)) + protected + number(1) + encoded_certificate(b"leaf", 2)
    (key,) = parse_jks(store([(1, entry)], "secret"), "secret").keys

    with pytest.raises(DamagedJks, match=says):
        key.decrypt("secret")
