"""PEM in settings and files."""

from pathlib import Path

import pytest

from headrace.security.pem import (
    CERTIFICATE,
    MAX_FILE_BYTES,
    PRIVATE_KEY,
    InvalidTlsSetting,
    Source,
    as_file,
    pem_of,
)

LINES = f"{'A' * 64}\n{'B' * 10}=="
ONE = f"-----BEGIN CERTIFICATE-----\n{LINES}\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{LINES}\n-----END ENCRYPTED PRIVATE KEY-----\n"
OLD_KEY = KEY.replace("ENCRYPTED", "RSA").replace(LINES, f"Proc-Type: 4,ENCRYPTED\n\n{LINES}")


@pytest.mark.parametrize("text", [ONE, f"  {ONE}", ONE.replace("\n", " "), ONE.replace("\n", "\r\n")])
def test_line_ends_may_have_been_lost_on_the_way(text: str) -> None:
    assert blocks(Source("ssl.ca.pem", text), CERTIFICATE) == ONE


def blocks(source: Source, kind: str) -> str:
    return source.blocks_in(source.read(), kind)


def test_certificates_and_keys_are_told_apart_and_comments_left_out() -> None:
    pem = Source("ssl.keystore.certificate.chain", f"Müller's\n{ONE}{KEY}and\n{ONE}")

    assert blocks(pem, CERTIFICATE) == ONE + ONE
    assert blocks(pem, PRIVATE_KEY) == KEY


def test_headers_of_a_key_are_kept() -> None:
    assert blocks(Source("ssl.key.pem", OLD_KEY), PRIVATE_KEY) == OLD_KEY


def test_a_location_is_a_file_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(ONE)

    assert blocks(Source("ssl.ca.location", str(tmp_path / "ca.pem")), CERTIFICATE) == ONE
    with pytest.raises(InvalidTlsSetting, match=r"^ssl\.ca\.pem holds no certificate in PEM$"):
        blocks(Source("ssl.ca.pem", str(tmp_path / "ca.pem")), CERTIFICATE)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTlsSetting, match=r"^ssl\.ca\.location is .*missing, where there is no file$"):
        blocks(Source("ssl.ca.location", str(tmp_path / "missing")), CERTIFICATE)
    with pytest.raises(InvalidTlsSetting, match=r"^ssl\.key\.location is .*, which cannot be read"):
        blocks(Source("ssl.key.location", str(tmp_path)), PRIVATE_KEY)


def test_a_very_large_file_is_refused_after_its_first_megabytes(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(100 * MAX_FILE_BYTES)  # takes no space on disk

    with pytest.raises(InvalidTlsSetting, match=r"larger than 16,777,216 bytes"):
        Source("ssl.keystore.location", str(path)).read()


def test_bytes_in_der_become_blocks() -> None:
    blocks = pem_of(CERTIFICATE, [b"\0" * 48 + b"\x04\x10A" + b"\0", b"\1"])

    assert blocks.startswith(
        f"-----BEGIN CERTIFICATE-----\n{'A' * 64}\nBBBBAA==\n-----END CERTIFICATE-----\n"
    )
    assert blocks.endswith("-----BEGIN CERTIFICATE-----\nAQ==\n-----END CERTIFICATE-----\n")


def test_a_file_for_openssl_is_gone_afterwards() -> None:
    with as_file(KEY) as path:
        assert Path(path).read_text() == KEY

    assert not Path(path).exists()
