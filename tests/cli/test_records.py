"""`headrace produce` and `headrace consume`: in pipes, with keys, headers and any bytes."""

import json
import os
import signal
import subprocess
import time
import uuid
from datetime import datetime
from pathlib import Path
from typing import IO

import pytest

from cli.command import TIMEOUT_S, Command
from cli.members import wait_until
from headrace.cli.produce import explain
from headrace.cli.support.session import Session
from headrace.client.errors import Unreachable
from headrace.testing import Cluster


def test_values_from_the_command_line(headrace: Command) -> None:
    assert (
        headrace.ok("produce", "args", "one", "two").text == "2 records to args; partition 0 offset 0 to 1\n"
    )
    assert headrace.ok("consume", "args", "--from-beginning", "--max-messages", "2").text == "one\ntwo\n"


def test_lines_from_a_pipe_and_from_a_file(headrace: Command, tmp_path: Path) -> None:
    done = headrace.ok("produce", "lines", "--json", stdin=b"a\n\nb")
    assert done.json == {"topic": "lines", "records": 3, "partitions": {"0": [0, 2]}}
    (tmp_path / "more").write_bytes(b"c\n")
    headrace.ok("produce", "lines", "--file", str(tmp_path / "more"))
    assert headrace.ok("consume", "lines", "--exit-at-end").text == "a\n\nb\nc\n"


def test_keys_headers_partitions_and_the_format(headrace: Command) -> None:
    headrace.ok("topic", "create", "keys", "--partitions", "3")
    headrace.ok(
        "produce",
        *("keys", "--key-separator", ":", "--header", "a=1", "--header", "b=", "--partition", "2"),
        stdin=b"k:v:w\nk2:\n",
    )
    headrace.ok("produce", "keys", "unkeyed", "--partition", "1")
    printed = headrace.ok(
        "consume",
        "keys",
        "--exit-at-end",
        "--partition",
        "2",
        "--format",
        r"%t %p %o %k=%v [%h] %K/%S%%\t\x41\n",
    )
    assert printed.text == "keys 2 0 k=v:w [a=1,b=] 1/3%\tA\nkeys 2 1 k2= [a=1,b=] 2/0%\tA\n"
    keyed = headrace.ok("consume", "keys", "--exit-at-end", "--partition", "1", "--key-separator", "->")
    assert keyed.text == "->unkeyed\n"


def test_a_key_goes_where_kafkas_own_producer_puts_it(headrace: Command) -> None:
    headrace.ok("topic", "create", "murmur", "--partitions", "10")
    headrace.ok("produce", "murmur", "v", "--key", "kafka")
    printed = headrace.ok("consume", "murmur", "--exit-at-end", "--format", "%p").text
    assert printed == str(_murmur2(b"kafka") % 10)


def test_records_between_two_times_or_offsets_are_printed(headrace: Command) -> None:
    now_ms = int(time.time() * 1000)
    headrace.ok("topic", "create", "spans", "--partitions", "2")
    for partition in "01":
        lines = [
            f'{{"value": "{partition}:{minutes}", "timestamp": {now_ms - minutes * 60_000}}}\n'
            for minutes in (90, 45, 20, 5)
        ]
        headrace.ok(
            "produce", "spans", "--from-json", "--partition", partition, stdin="".join(lines).encode()
        )

    def printed(*where: str) -> list[str]:
        return sorted(headrace.ok("consume", "spans", *where).text.split())

    assert printed("--from", "-1h", "--to", "-10m") == ["0:20", "0:45", "1:20", "1:45"]
    assert printed("--from", "-1h", "--to", f"@{now_ms - 45 * 60_000}") == []
    assert printed("--to", "-30m", "--partition", "1") == ["1:45", "1:90"]
    assert printed("--from", "1", "--to", "3", "--partition", "0") == ["0:20", "0:45"]
    assert printed("--from", "-2d", "--to", "99", "--partition", "0") == ["0:20", "0:45", "0:5", "0:90"]
    assert printed("--from", "-1", "--to", "end") == ["0:5", "1:5"]
    assert printed("--from", "3", "--to", "1") == []
    shown = headrace.ok("consume", "spans", "--to", "1", "--partition", "0", "--format", "%T").text
    assert datetime.fromisoformat(shown).timestamp() * 1000 == now_ms - 90 * 60_000
    assert "expected beginning, end, an offset" in headrace("consume", "spans", "--to", "-1y").complaint


def test_a_topic_that_did_not_exist_is_not_created_silently(headrace: Command) -> None:
    headrace.ok("topic", "create", "invoices")

    created = headrace("produce", "invoicse", "x")
    assert (created.status, created.text) == (0, "1 record to invoicse; partition 0 offset 0\n")
    assert created.err == "headrace: topic invoicse did not exist and was created; did you mean invoices?\n"
    assert headrace("produce", "unlike-any-other", "x").err == (
        "headrace: topic unlike-any-other did not exist and was created\n"
    )
    assert headrace("produce", "invoicse", "x").err == ""
    assert headrace("produce", "invoicesss", "x", "--create").err == ""

    status, said = headrace.answered("n", "produce", "invocies", "x")
    assert (status, said.count("Create invocies? [y/N]")) == (1, 1)
    assert said.strip().endswith("headrace: nothing was written")
    assert "invocies" not in headrace.ok("topic", "list").text
    status, said = headrace.answered("y", "produce", "invocies", "x")
    assert status == 0
    assert "1 record to invocies" in said


@pytest.mark.parametrize(
    "arguments",
    ["consume recipts -e", "topic describe recipts", "topic delete recipts --yes", "topic offsets recipts"],
)
def test_a_mistyped_topic_is_recognised(headrace: Command, arguments: str) -> None:
    headrace.ok("topic", "create", "receipts", "--if-not-exists")

    complaint = headrace(*arguments.split()).complaint
    assert complaint == "there is no topic recipts; did you mean receipts?"
    assert headrace("topic", "describe", "xyzzy").complaint == "there is no topic xyzzy"


def test_any_bytes_come_back(headrace: Command, tmp_path: Path) -> None:
    data = bytes(range(256)) * 300
    (tmp_path / "blob").write_bytes(data)
    headrace.ok("produce", "bytes", "--whole", "--file", str(tmp_path / "blob"), "--compression", "lz4")
    assert headrace.ok("consume", "bytes", "--exit-at-end", "--raw", "--format", "%v").out == data


def test_records_between_zero_bytes(headrace: Command) -> None:
    headrace.ok("produce", "zeros", "--delimiter", r"\0", stdin=b"a\nb\0c\0")
    assert headrace.ok("consume", "zeros", "--exit-at-end", "--format", r"%v\0").out == b"a\nb\0c\0"


def test_json_lines_go_from_one_topic_to_another(headrace: Command) -> None:
    odd = '{"key": {"base64": "/w=="}, "value": null, "headers": [["h", {"base64": "AP8="}], ["h", "x"]]}\n'
    headrace.ok("produce", "odd", "--from-json", stdin=odd.encode() + b'{"value": "plain"}\n')
    printed = headrace.ok("consume", "odd", "--exit-at-end", "--json").out
    headrace.ok("produce", "even", "--from-json", stdin=printed)
    copied = headrace.ok("consume", "even", "--exit-at-end", "--json").out
    first, second = (json.loads(line) for line in copied.splitlines())
    assert first["key"] == {"base64": "/w=="}
    assert first["value"] is None
    assert first["headers"] == [["h", {"base64": "AP8="}], ["h", "x"]]
    assert (second["key"], second["value"], second["headers"]) == (None, "plain", [])
    assert copied == printed.replace(b'"odd"', b'"even"')


def test_an_empty_value_can_be_a_tombstone(headrace: Command) -> None:
    headrace.ok("produce", "tombs", "k:", "--key-separator", ":", "--empty-is-null")
    assert headrace.ok("consume", "tombs", "--exit-at-end", "--json").json["value"] is None


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_acks(headrace: Command, acks: str) -> None:
    headrace.ok("topic", "create", f"acks-{acks}")
    assert headrace.ok("produce", f"acks-{acks}", "x", "--acks", acks).text.startswith("1 record to acks-")
    assert headrace.ok("consume", f"acks-{acks}", "--from-beginning", "--max-messages", "1").text == "x\n"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compression(headrace: Command, codec: str) -> None:
    lines = b"".join(b"%d\n" % number for number in range(2000))
    headrace.ok("produce", f"codec-{codec}", "--compression", codec, stdin=lines)
    assert headrace.ok("consume", f"codec-{codec}", "--exit-at-end").out == lines


def test_where_to_begin(headrace: Command) -> None:
    records = [json.dumps({"value": str(number), "timestamp": 1000 * number}) for number in range(1, 11)]
    headrace.ok("produce", "where", "--from-json", stdin="\n".join(records).encode())

    def read(start: str) -> list[int]:
        return [
            int(line)
            for line in headrace.ok("consume", "where", "--from", start, "--exit-at-end").text.split()
        ]

    assert read("8") == [9, 10]
    assert read("-1") == [10]
    assert read("-99") == [*range(1, 11)]
    assert read("@8500") == [9, 10]
    assert read("1970-01-01T00:00:09.5+00:00") == [10]
    assert read("end") == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("consume absent --exit-at-end", "there is no topic absent"),
        ("consume narrow --partition 4", "narrow has no partition 4, only 0 to 0"),
        ("consume narrow --from 99", "narrow-0: the offset does not exist (OFFSET_OUT_OF_RANGE)"),
        ("produce narrow x --partition 4", "narrow has no partition 4"),
        ("produce narrow x --key-separator :", "record 1 has no key separator"),
        ("produce narrow [] --from-json", "line 1: expected an object such as"),
        ("--bootstrap 127.0.0.1:1 produce narrow x", "no broker answers at 127.0.0.1:1"),
        ("--bootstrap 127.0.0.1:1 consume narrow", "no broker answers at 127.0.0.1:1"),
    ],
)
def test_a_refusal_is_one_sentence(headrace: Command, arguments: str, sentence: str) -> None:
    headrace("topic", "create", "narrow")
    refused = headrace(*arguments.split())
    assert refused.status == 1, refused
    assert sentence in refused.complaint


BAD = [
    (("--key-separator", ":"), [b"k:1", b"k"], "record 2 has no key separator"),
    (("--from-json",), [b'{"value": "1"}', b"{"], "line 2: expected an object such as"),
    (("--from-json",), [b'{"value": "1"}', b'{"value": "2", "timestamp": "noon"}'], "line 2: expected"),
]


@pytest.mark.parametrize(("options", "lines", "sentence"), BAD)
def test_of_a_pipe_what_was_written_before_a_bad_line_is_told(
    headrace: Command, options: tuple[str, ...], lines: list[bytes], sentence: str
) -> None:
    topic = f"halfway-{uuid.uuid4().hex[:8]}"
    refused = headrace("produce", topic, *options, stdin=b"\n".join(lines))
    assert refused.status == 1
    assert refused.complaint.startswith(sentence)
    assert refused.complaint.endswith(f"; before it, 1 record to {topic}; partition 0 offset 0 was written")
    assert headrace.ok("consume", topic, "--exit-at-end").text == "1\n"

    refused = headrace("produce", topic, *options, "--json", stdin=b"\n".join(lines))
    assert (refused.status, refused.out) == (1, b"")
    written = {"topic": topic, "records": 1, "partitions": {"0": [1, 1]}}
    assert json.loads(refused.err)["written"] == written


@pytest.mark.parametrize(("options", "lines", "sentence"), BAD)
@pytest.mark.parametrize("way", ["values", "file"])
def test_of_values_and_files_nothing_is_written_if_one_is_bad(
    headrace: Command,
    tmp_path: Path,
    *,
    way: str,
    options: tuple[str, ...],
    lines: list[bytes],
    sentence: str,
) -> None:
    topic = f"unharmed-{uuid.uuid4().hex[:8]}"
    headrace.ok("topic", "create", topic)
    file = tmp_path / "lines"
    file.write_bytes(b"\n".join(lines))
    given = ["--file", str(file)] if way == "file" else [line.decode() for line in lines]
    refused = headrace("produce", topic, *given, *options)
    assert refused.status == 1
    assert refused.complaint.startswith(sentence)
    assert refused.complaint.endswith("; nothing was written")
    assert headrace.ok("consume", topic, "--exit-at-end").out == b""


def test_a_file_with_keys_is_written_once(headrace: Command, tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"".join(b"k:%d\n" % number for number in range(20_000)))
    done = headrace.ok("produce", "keyed-file", "--key-separator", ":", "--file", str(file), "--json")
    assert done.json == {"topic": "keyed-file", "records": 20_000, "partitions": {"0": [0, 19_999]}}


def test_a_record_that_is_too_large_is_refused(headrace: Command) -> None:
    refused = headrace("produce", "large", "--whole", stdin=bytes(2_000_000))
    assert refused.status == 1
    assert refused.complaint.startswith("large: message size too large: raise max.message.bytes of the topic")


def test_a_reader_that_leaves_ends_the_pipe_quietly(headrace: Command) -> None:
    headrace.ok("produce", "pipe", stdin=b"0123456789\n" * 50_000)
    with _start(headrace, "consume", "pipe", "--from-beginning") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"0123456789\n"
        process.stdout.close()
        assert process.wait(TIMEOUT_S) == -signal.SIGPIPE
        assert process.stderr.read() == b""


def test_a_waiting_consumer_prints_what_comes_at_once_and_ctrl_c_ends_it(headrace: Command) -> None:
    headrace.ok("topic", "create", "follow")
    with _start(headrace, "consume", "follow", "--from", "0") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        for number in range(3):
            headrace.ok("produce", "follow", str(number))
            assert _line(process.stdout) == b"%d\n" % number
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT_S) == 130
        assert process.stderr.read() == b""


def test_a_waiting_producer_sends_what_it_reads_before_its_input_ends(headrace: Command) -> None:
    headrace.ok("topic", "create", "trickle")
    with _start(headrace, "produce", "trickle", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(b"early\n")
        process.stdin.flush()
        assert headrace.ok("consume", "trickle", "--from", "0", "--max-messages", "1").text == "early\n"
        process.stdin.close()
        assert process.wait(TIMEOUT_S) == 0


def _start(headrace: Command, *arguments: str, stdin: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        headrace.arguments(*arguments),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=headrace.environment,
        bufsize=0,
    )


def _line(stream: IO[bytes]) -> bytes:
    """The next line, or what has come of it when time is up."""
    os.set_blocking(stream.fileno(), False)
    line, deadline = b"", time.monotonic() + TIMEOUT_S
    while not line.endswith(b"\n") and time.monotonic() < deadline:
        line += stream.read(1) or b""
        time.sleep(0.001)
    return line


def _murmur2(data: bytes) -> int:
    """Kafka's Utils.murmur2, made positive as its partitioner does."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    hashed = 0x9747B28C ^ len(data)
    whole = len(data) - len(data) % 4
    for start in range(0, whole, 4):
        word = int.from_bytes(data[start : start + 4], "little") * factor & mask
        word = (word ^ word >> 24) * factor & mask
        hashed = (hashed * factor & mask) ^ word
    if rest := data[whole:]:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * factor & mask
    hashed = (hashed ^ hashed >> 13) * factor & mask
    return (hashed ^ hashed >> 15) & 0x7FFFFFFF


def test_records_that_are_not_taken_for_want_of_replicas_are_told_why() -> None:
    late = Unreachable("no broker answered in time")
    with Cluster(2) as cluster:
        session = Session(bootstrap_option=cluster.bootstrap_of(1))
        session.admin.create_topic("wanting", replicas=2, configs={"min.insync.replicas": "2"})
        session.admin.create_topic("content", replicas=2)
        assert explain(session, "wanting", late) is late
        cluster.stop_broker(2)

        wait_until(lambda: explain(session, "wanting", late) is not late)
        assert str(explain(session, "wanting", late)) == (
            "wanting-0 accepts nothing with acks=all: 1 replica in sync, and min.insync.replicas is 2 "
            "(NOT_ENOUGH_REPLICAS)"
        )
        assert explain(session, "content", late) is late
    found = explain(Session(bootstrap_option="127.0.0.1:1"), "wanting", late)
    assert str(found).startswith("no broker answers at 127.0.0.1:1")


def test_ctrl_c_in_the_middle_of_a_pipe_says_what_was_written(headrace: Command) -> None:
    headrace.ok("topic", "create", "interrupted")
    with subprocess.Popen(
        headrace.arguments("produce", "interrupted"),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=headrace.environment,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"a\nb\nhal")
        process.stdin.flush()
        wait_until(lambda: headrace.ok("consume", "interrupted", "--exit-at-end").text == "a\nb\n")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    assert said == b"headrace: interrupted; 2 records to interrupted; partition 0 offset 0 to 1\n"


def test_a_topic_that_only_the_registry_can_write_to_says_so(headrace: Command) -> None:
    headrace.ok("topic", "create", "by-offset", "--config", "headrace.append.expected.offset=true")
    headrace.ok("produce", "by-offset", "first")  # at the offset 0, which is what everybody names
    refused = headrace("produce", "by-offset", "second")
    said = "by-offset accepts only records that name their offset (headrace.append.expected.offset=true)"
    assert refused.complaint.startswith(said)
