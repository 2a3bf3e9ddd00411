"""Damaged keystores: whatever their bytes are, they are read in full or refused with a sentence."""

import functools
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, pkcs12
from hypothesis import given
from hypothesis import strategies as st

from headrace.security.der import Malformed
from headrace.security.distinguished_names import distinguished_name, subject_name
from headrace.security.jks import DamagedJks, Jks, WrongJksPassword, parse_jks
from headrace.security.pem import InvalidTlsSetting
from headrace.security.stores import Keystore, Truststore
from support import jks
from support.certificates import Authority

PASSWORD = "secret"


@functools.cache
def jks_store(version: int = 2) -> bytes:
    authority = Authority("authority")
    server = authority.certify("server")
    chain = [server.der, authority.identity.der]
    key = jks.private_key(server.key_der, PASSWORD, chain, version=version)
    return jks.store([key, jks.trusted(authority.identity.der, version=version)], PASSWORD, version=version)


@functools.cache
def pkcs12_store() -> bytes:
    server = Authority("authority").certify("server")
    encryption = BestAvailableEncryption(PASSWORD.encode())
    return pkcs12.serialize_key_and_certificates(b"a", server.private, server.signed, None, encryption)


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


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("password", [PASSWORD, None])
def test_a_jks_store_that_is_cut_off_anywhere_is_damaged(version: int, password: str | None) -> None:
    data = jks_store(version)
    assert isinstance(parse_jks(data, password), Jks)
    for size in range(len(data)):
        with pytest.raises(DamagedJks):
            parse_jks(data[:size], password)


def test_a_pkcs12_store_that_is_cut_off_anywhere_is_damaged(directory: Path) -> None:
    data = pkcs12_store()
    read(data, directory)
    for size in range(len(data)):
        with pytest.raises(InvalidTlsSetting, match=r"^ssl\.keystore\.location "):
            read(data[:size], directory)


@given(at=st.integers(0, 10_000), bits=st.integers(1, 255))
def test_a_changed_byte_of_a_jks_store_is_found(at: int, bits: int) -> None:
    data = bytearray(jks_store())
    data[at % len(data)] ^= bits

    with pytest.raises((DamagedJks, WrongJksPassword)):
        parse_jks(bytes(data), PASSWORD)


@given(at=st.integers(0, 10_000), bits=st.integers(1, 255))
def test_a_key_whose_store_is_not_verified_is_right_or_refused(at: int, bits: int) -> None:
    data = bytearray(jks_store())
    data[at % len(data)] ^= bits
    (original,) = parse_jks(jks_store(), PASSWORD).keys
    try:
        keys = [key.decrypt(PASSWORD) for key in parse_jks(bytes(data), None).keys]
    except (DamagedJks, WrongJksPassword):
        return

    assert keys in ([], [original.decrypt(PASSWORD)])


@given(body=st.binary(max_size=300), version=st.sampled_from([1, 2]))
def test_any_bytes_are_a_jks_store_or_damaged(body: bytes, version: int) -> None:
    data = jks.number(0xFEEDFEED) + jks.number(version) + jks.number(1) + body
    try:
        store = parse_jks(data, None)
        for key in store.keys:
            key.decrypt(PASSWORD)
    except (DamagedJks, WrongJksPassword):
        return


@given(data=st.binary(max_size=200))
def test_any_bytes_are_a_name_or_malformed(data: bytes) -> None:
    for parse in (distinguished_name, subject_name):
        try:
            assert isinstance(parse(data), str)
        except Malformed:
            continue


@given(at=st.integers(0, 10_000), bits=st.integers(1, 255))
def test_a_changed_certificate_has_a_name_or_is_malformed(at: int, bits: int) -> None:
    certificate = bytearray(parse_jks(jks_store(), PASSWORD).trusted[0])
    certificate[at % len(certificate)] ^= bits
    try:
        assert isinstance(subject_name(bytes(certificate)), str)
    except Malformed:
        return
