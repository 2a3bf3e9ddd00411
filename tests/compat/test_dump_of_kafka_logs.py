"""`headrace log dump` on the files of Apache Kafka: after a clean stop, after SIGKILL, and damaged."""

import json
import random
import shutil
from base64 import b64decode
from collections import defaultdict
from pathlib import Path
from typing import Any, Final

import pytest

from cli.command import Command, Result
from compat.kafka_tools.records import Record
from compat.kafka_tools.written import CODECS, TOPICS, WrittenDirectory
from headrace.protocol.errors import KafkaError, ProtocolError
from headrace.storage.dump import batches, entries
from headrace.storage.errors import StorageError

DAMAGES: Final = 300  # files
MARKERS: Final = ("COMMIT", "ABORT")
PRINTED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
Line = dict[str, Any]
endings = pytest.mark.parametrize("ending", ["written", "killed"])


@pytest.fixture
def left_behind(ending: str, request: pytest.FixtureRequest) -> WrittenDirectory:
    """What Kafka left after a clean stop (`written`) or after SIGKILL (`killed`); not to be touched."""
    written: WrittenDirectory = request.getfixturevalue(f"kafka_{ending}_directory")
    return written


def dump(*arguments: object) -> Result:
    return Command("")("log", "dump", *map(str, arguments))


def raw(shown: Any) -> bytes | None:
    if shown is None:
        return None
    return b64decode(shown["base64"]) if isinstance(shown, dict) else str(shown).encode()


@endings
def test_every_file_is_printed_and_the_records_are_those_that_kafka_served(
    left_behind: WrittenDirectory,
) -> None:
    result = dump(*(left_behind.partition(topic) for topic in TOPICS), "--records", "--json")
    assert (result.status, result.err) == (0, "")
    by_kind: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in map(json.loads, result.text.splitlines()):
        path = Path(line["file"])
        by_kind[path.parent.name.removesuffix("-0"), path.suffix or path.name].append(line)

    for topic in TOPICS:
        served = [each for each in left_behind.uncommitted if each.topic == topic]
        lines = {each["offset"]: each for each in by_kind[topic, ".log"] if "value" in each}
        assert [record_of(topic, lines[each.offset]) for each in served] == served, topic
        assert by_kind[topic, "leader-epoch-checkpoint"][0]["start_offset"] >= 0
    for codec in CODECS:
        assert {each["compression"] for each in by_kind[f"confluent-{codec}", ".log"] if "crc" in each} == {
            codec
        }
    assert [
        each["control"] for each in by_kind["transactions", ".log"] if each.get("control") in MARKERS
    ] == ["COMMIT", "ABORT", "COMMIT", "ABORT", "ABORT", "COMMIT"]
    assert len(by_kind["transactions", ".txnindex"]) == 3
    positions = [each["position"] for each in by_kind["segments", ".index"]]
    assert positions, "index entries, and no padding, which an index has after SIGKILL"
    assert 0 not in positions


def record_of(topic: str, line: Line) -> Record:
    return Record(
        topic=topic,
        partition=0,
        offset=line["offset"],
        timestamp_ms=line["timestamp"],
        key=raw(line["key"]),
        value=raw(line["value"]),
        headers=tuple((name, raw(value)) for name, value in line.get("headers", [])),
    )


@endings
def test_checkpoints_of_a_log_directory_are_printed(left_behind: WrittenDirectory) -> None:
    names = (
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
        "log-start-offset-checkpoint",
    )
    result = dump(*(left_behind.path / name for name in names), "--json")
    assert (result.status, result.err) == (0, "")


def test_damaged_files_are_reported_in_a_sentence_and_never_changed(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    """Truncated, with bytes changed, appended, and replaced: every reading ends with entries or an error."""
    chance = random.Random(19)
    files = kafka_written_directory.files(*PRINTED)
    refusals = 0
    for _ in range(DAMAGES):
        file = chance.choice(files)
        data = damaged(chance, file.read_bytes())
        copy = tmp_path / file.name
        copy.write_bytes(data)
        try:
            if copy.suffix != ".log":
                list(entries(copy))
            else:
                for batch in batches(copy):
                    list(batch.records)
        except (StorageError, KafkaError, ProtocolError) as error:
            assert str(error)  # noqa: PT017  either is fine, and nothing else
            refusals += 1
        assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == {file.name: data}
        copy.unlink()
    assert refusals > DAMAGES // 4


def damaged(chance: random.Random, data: bytes) -> bytes:
    match chance.randrange(4):
        case 0:
            return data[: chance.randrange(len(data) + 1)]
        case 1 if data:
            at = chance.randrange(len(data))
            return data[:at] + chance.randbytes(1) + data[at + 1 :]
        case 2:
            return data + chance.randbytes(chance.randrange(1, 40))
    return chance.randbytes(chance.randrange(300))


def test_the_other_files_are_printed_if_one_is_damaged(
    kafka_written_directory: WrittenDirectory, tmp_path: Path
) -> None:
    copy = Path(
        shutil.copytree(kafka_written_directory.partition("transactions"), tmp_path / "transactions-0")
    )
    (index,) = copy.glob("*.txnindex")
    index.write_bytes(index.read_bytes()[:-5])
    log = max(copy.glob("*.log"))
    log.write_bytes(log.read_bytes()[:-5])

    result = dump(copy, "--json")

    assert (result.status, result.err) == (1, "")
    lines = [json.loads(line) for line in result.text.splitlines()]
    of_log, of_index = (each["error"] for each in lines if "error" in each)
    assert of_log.startswith(f"{log} is corrupt at byte ")
    assert of_index.startswith(f"{index} has 97 bytes, not a multiple of 34")
    assert "start_offset" in lines[-1]
