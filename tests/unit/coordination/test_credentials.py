"""JAAS files with the users of ZooKeeper."""

from pathlib import Path

import pytest

from headrace.coordination.credentials import Credential, ensure_file, is_readable_by_others, users_of_file
from headrace.coordination.errors import CoordinationError


def test_a_created_file_has_mode_600_and_one_user_for_both_sides(tmp_path: Path) -> None:
    path = ensure_file(tmp_path / "data" / "jaas.conf")
    client = Credential.of_file(path)

    assert path.stat().st_mode & 0o777 == 0o600
    assert users_of_file(path) == {client.name: client.password}
    assert len(client.password) > 40
    assert client.password not in repr(client)
    assert [each.name for each in path.parent.iterdir()] == ["jaas.conf"]


def test_an_existing_file_is_kept(tmp_path: Path) -> None:
    path = ensure_file(tmp_path / "jaas.conf")
    before = path.read_text()

    assert ensure_file(path).read_text() == before
    assert ensure_file(tmp_path / "other.conf").read_text() != before


def test_a_server_refuses_a_file_that_everybody_can_read(tmp_path: Path) -> None:
    path = ensure_file(tmp_path / "jaas.conf")
    path.chmod(0o644)

    assert is_readable_by_others(path)
    with pytest.raises(CoordinationError, match=r"every user can read it: chmod 600 .*jaas\.conf"):
        users_of_file(path)


@pytest.mark.parametrize(
    "content", ["", "Client { m required username=a; };", 'Server { m required x="1"; };']
)
def test_files_without_users_or_passwords(tmp_path: Path, content: str) -> None:
    path = tmp_path / "jaas.conf"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(CoordinationError, match="has no users"):
        users_of_file(path)
    with pytest.raises(CoordinationError, match="has no username and password"):
        Credential.of_file(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(CoordinationError, match=r"cannot read the JAAS file .*missing: No such file"):
        Credential.of_file(tmp_path / "missing")
