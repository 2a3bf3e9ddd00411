"""PEM in settings and files."""

from pathlib import Path

import pytest

from headrace.client.errors import ClientError
from headrace.client.wire.tls import CERTIFICATE, PRIVATE_KEY, Pem, as_file

LINES = f"{'A' * 64}\n{'B' * 10}=="
ONE = f"-----BEGIN CERTIFICATE-----\n{LINES}\n-----END CERTIFICATE-----\n"
KEY = f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{LINES}\n-----END ENCRYPTED PRIVATE KEY-----\n"
OLD_KEY = KEY.replace("ENCRYPTED", "RSA").replace(LINES, f"Proc-Type: 4,ENCRYPTED\n\n{LINES}")


@pytest.mark.parametrize("text", [ONE, f"  {ONE}", ONE.replace("\n", " "), ONE.replace("\n", "\r\n")])
def test_line_ends_may_have_been_lost_on_the_way(text: str) -> None:
    assert Pem("ssl.ca.pem", text).blocks(CERTIFICATE) == ONE


def test_certificates_and_keys_are_told_apart_and_comments_left_out() -> None:
    pem = Pem("ssl.keystore.certificate.chain", f"Müller's\n{ONE}{KEY}and\n{ONE}")

    assert pem.blocks(CERTIFICATE) == ONE + ONE
    assert pem.blocks(PRIVATE_KEY) == KEY


def test_headers_of_a_key_are_kept() -> None:
    assert Pem("ssl.key.pem", OLD_KEY).blocks(PRIVATE_KEY) == OLD_KEY


def test_a_location_is_a_file_and_nothing_else_is(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(ONE)

    assert Pem("ssl.ca.location", str(tmp_path / "ca.pem")).blocks(CERTIFICATE) == ONE
    with pytest.raises(ClientError, match=r"^ssl\.ca\.pem holds no certificate in PEM$"):
        Pem("ssl.ca.pem", str(tmp_path / "ca.pem")).blocks(CERTIFICATE)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match=r"^ssl\.ca\.location is .*missing, where there is no file$"):
        Pem("ssl.ca.location", str(tmp_path / "missing")).blocks(CERTIFICATE)
    with pytest.raises(ClientError, match=r"^ssl\.key\.location is .*, which cannot be read"):
        Pem("ssl.key.location", str(tmp_path)).blocks(PRIVATE_KEY)


def test_a_file_for_openssl_is_gone_afterwards() -> None:
    with as_file(KEY) as path:
        assert Path(path).read_text() == KEY

    assert not Path(path).exists()
