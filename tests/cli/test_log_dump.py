"""`headrace log dump` on the files that a real broker has left."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.command import Command, Result
from headrace import Producer
from support.process import UpProcess

SEGMENT = "00000000000000000000"


class _Abort(Exception):
    """Ends a transaction without a commit."""


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log directory of a broker with records, transactions of both outcomes, and a group."""
    with UpProcess(tmp_path_factory.mktemp("dump"), arguments=["--no-http"]) as up:
        headrace = Command(up.bootstrap)
        headrace.ok("produce", "orders", "--key", "k", "a", "b", "c" * 3000)
        headrace.ok("consume", "orders", "--group", "billing", "--from", "beginning", "--exit-at-end")
        with Producer(up.bootstrap, settings={"transactional.id": "payments"}) as producer:
            with producer.transaction():
                producer.send("orders", "committed")
            with suppress(_Abort), producer.transaction():
                producer.send("orders", "aborted")
                producer.flush()
                raise _Abort
        data = up.data / "broker-1"
        up.stop()
    return data


def dump(*arguments: object) -> Result:
    return Command("")("log", "dump", *map(str, arguments))


def lines(*arguments: object) -> list[dict[str, Any]]:
    result = dump(*arguments, "--json")
    assert (result.status, result.err) == (0, ""), result
    return [json.loads(line) for line in result.text.splitlines()]


def test_batches_records_and_markers_are_printed(left: Path) -> None:
    found = lines(left / "orders-0" / f"{SEGMENT}.log", "--records")
    assert [each["offset"] for each in found if "offset" in each] == list(range(7))
    assert [each["value"] for each in found if "value" in each][:2] == ["a", "b"]
    assert [each["control"] for each in found if each.get("control") in {"COMMIT", "ABORT"}] == [
        "COMMIT",
        "ABORT",
    ]
    assert [each["base_offset"] for each in found if each.get("transactional")] == [3, 4, 5, 6]
    (long,) = [each for each in found if each.get("value_size") == 3000]
    assert long["value"] == "c" * 1000 + "…"


def test_batches_alone_and_a_part_of_them(left: Path) -> None:
    file = left / "orders-0" / f"{SEGMENT}.log"
    assert all("base_offset" in each for each in lines(file))
    assert [each["base_offset"] for each in lines(file, "--from", "5")] == [5, 6]
    assert len(lines(file, "--records", "-n", "2")) == 2
    whole = lines(file, "--records", "--max-bytes", "5000")
    assert "c" * 3000 in [each.get("value") for each in whole]


def test_a_directory_has_indexes_snapshots_and_epochs(left: Path) -> None:
    found = lines(left / "orders-0")
    by_suffix: dict[str, list[dict[str, Any]]] = {}
    for each in found:
        by_suffix.setdefault(Path(each["file"]).suffix or Path(each["file"]).name, []).append(each)
    (epoch,) = by_suffix["leader-epoch-checkpoint"]
    assert epoch["start_offset"] == 0
    (aborted,) = by_suffix[".txnindex"]
    assert (aborted["first_offset"], aborted["last_offset"]) == (5, 6)
    (producer,) = by_suffix[".snapshot"]
    assert (producer["producer_id"], producer["last_offset"]) == (aborted["producer_id"], 5)
    assert by_suffix[".timeindex"][-1]["offset"] == 6


def test_checkpoints_and_text_for_people(left: Path) -> None:
    recovery = lines(left / "recovery-point-offset-checkpoint")
    assert {"topic": "orders", "partition": 0, "offset": 7}.items() <= next(
        each for each in recovery if each["topic"] == "orders"
    ).items()
    shown = dump(left / "orders-0", "--print-data-log").text
    assert "    offset=0 " in shown
    assert f"{left / 'orders-0' / SEGMENT}.log\n  base_offset=0 last_offset=2 records=3 position=0" in shown


def test_a_damaged_file_is_reported_and_the_others_are_printed(left: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "orders-0"
    damaged.mkdir()
    for each in (left / "orders-0").iterdir():
        (damaged / each.name).write_bytes(each.read_bytes())
    log = damaged / f"{SEGMENT}.log"
    log.write_bytes(log.read_bytes()[:70] + b"x" + log.read_bytes()[71:])
    result = dump(damaged)
    assert result.status == 1
    assert "is corrupt at byte 0: batch checksum is" in result.err
    assert "leader_epoch=" in result.text

    refused = dump(tmp_path)
    assert "has no files of a partition: name a directory such as orders-0" in refused.complaint
