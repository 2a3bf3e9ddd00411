"""tools/install.py: what uv is told of pip's configuration; and the locked files that are installed."""

import re
from importlib import import_module
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
CONFIGURATION = [
    "global.index-url='https://index.example/simple'",
    "global.extra-index-url='https://a.example/simple\\nhttps://b.example/simple'",
    "global.timeout='60'",
    "install.timeout='120'",
    ":env:.find-links='/wheels /more'",
    "freeze.timeout='1'",
]


def test_uv_takes_packages_from_where_pip_is_configured_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    install = import_module("install")
    assert install.uv_environment(CONFIGURATION, {"UV_SYSTEM_CERTS": "false"}) == {
        "UV_DEFAULT_INDEX": "https://index.example/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_HTTP_TIMEOUT": "120",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
    }


def test_the_demo_has_the_versions_and_hashes_of_the_tests() -> None:
    assert locked("demo.txt").items() < locked("dev.txt").items()


def locked(file: str) -> dict[str, frozenset[str]]:
    """Return the hashes of every package, by its name and version."""
    text = (REPOSITORY / "requirements" / file).read_text()
    return {
        requirement: frozenset(re.findall(r"--hash=(\S+)", hashes))
        for requirement, hashes in re.findall(r"^(\S+==\S+)(.*(?:\n {4}.*)*)", text, re.MULTILINE)
    }
