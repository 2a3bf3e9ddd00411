"""Four-letter words: what operators and their tools ask."""

from typing import Any

import pytest

from coordination.conftest import Server


def facts(text: str, separator: str) -> dict[str, str]:
    pairs = (line.split(separator, 1) for line in text.splitlines() if separator in line)
    return {name.strip(): value.strip() for name, value in pairs}


def test_are_you_ok(server: Server) -> None:
    assert server.four_letter_word("ruok") == "imok"


def test_srvr(server: Server, zk: Any) -> None:
    zk.create("/a")
    srvr = facts(server.four_letter_word("srvr"), ":")

    assert srvr["Zookeeper version"].startswith("3.9.5")
    assert srvr["Mode"] == "standalone"
    assert int(srvr["Zxid"], 16) >= zk.exists("/a").czxid
    assert int(srvr["Node count"]) >= 6
    assert int(srvr["Connections"]) >= 2


def test_mntr(server: Server, zk: Any) -> None:
    names = ("znode_count", "ephemerals_count", "watch_count")
    growths = []
    for attempt in range(5):  # what an earlier test has left may end in the middle of one, not of all
        before = facts(server.four_letter_word("mntr"), "\t")
        zk.create(f"/e{attempt}", ephemeral=True)
        zk.get(f"/e{attempt}", watch=lambda _event: None)
        after = facts(server.four_letter_word("mntr"), "\t")
        growths.append([int(after[f"zk_{name}"]) - int(before[f"zk_{name}"]) for name in names])

    assert [1, 1, 1] in growths
    assert after["zk_server_state"] == "standalone"


def test_envi_has_the_version(zk: Any) -> None:
    assert zk.server_version() == (3, 9, 5)


@pytest.mark.parametrize("word", ["nope", "ruo", "\x00\x00\x00\x00"])
def test_no_word_at_all_gets_no_answer(server: Server, word: str) -> None:
    if len(word) < 4:
        word += "\xff".encode("latin-1").decode("latin-1")
    assert server.four_letter_word(word) == ""
