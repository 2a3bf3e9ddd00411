"""Damaged keystores: whatever their bytes are, they are read in full or refused with a sentence."""

import functools
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.certificate_fields import Malformed, distinguished_name, subject_name
from headrace.security.pem import InvalidTlsSetting
from headrace.security.stores import Keystore, Truststore
from support.certificates import Authority

PASSWORD = "secret"


@functools.cache
def pkcs12_store() -> bytes:
    server = Authority("authority").certify("server")
    encryption = BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"a", server.private, server.signed, None, encryption)


@functools.cache
def certificate() -> bytes:
    return Authority("authority").identity.der


def read(data: bytes, directory: Path) -> None:
    """Read a file as a keystore and as a truststore."""
    path = directory / "store"
    path.write_bytes(data)
    keystore = Keystore.of({"ssl.keystore.location": str(path), "ssl.keystore.password": PASSWORD})
    truststore = Truststore.of({"ssl.truststore.location": str(path), "ssl.truststore.password": PASSWORD})
    assert keystore is not None
    assert truststore is not None
    keystore.identity()
    truststore.certificates()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stores")


def test_a_pkcs12_store_that_is_cut_off_anywhere_is_damaged(directory: Path) -> None:
    data = pkcs12_store()
    read(data, directory)
    for size in range(len(data)):
        with pytest.raises(InvalidTlsSetting, match=r"^ssl\.keystore\.location "):
            read(data[:size], directory)


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_name_or_malformed(data: bytes) -> None:
    for parse in (distinguished_name, subject_name):
        try:
            assert isinstance(parse(data), str)
        except Malformed:
            continue


@given(at=st.integers(0, 10_000), bits=st.integers(1, 255))
def test_a_changed_certificate_has_a_name_or_is_malformed(at: int, bits: int) -> None:
    changed = bytearray(certificate())
    changed[at % len(changed)] ^= bits
    try:
        assert isinstance(subject_name(bytes(changed)), str)
    except Malformed:
        return
