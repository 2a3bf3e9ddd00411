"""The reader notices what does not do what the page says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pages.expected import is_expected
from pages.markdown import Block, blocks
from pages.reader import BlockFailed, Reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with Reader(tmp_path) as made:
        yield made


def block(text: str, prints: str | None = None, language: str = "sh") -> Block:
    return Block(page="page.md", line=1, section="A", language=language, text=text, prints=prints)


def test_a_shell_keeps_its_variables_and_its_directory(reader: Reader) -> None:
    reader.run(block("mkdir inside; cd inside; export NAME=value\n"))
    reader.run(block('echo "$NAME"; basename "$PWD"; printf end\n', "value\ninside\nend"))


def test_directories_and_ports_are_the_readers_own(reader: Reader, tmp_path: Path) -> None:
    reader.run(block("echo x > /tmp/file; cat /tmp/file\n", "x"))
    reader.run(
        block("import os\nprint(os.environ['HOME'], '127.0.0.1:9092')\n", "... 127.0.0.1:9092", "python")
    )

    assert (tmp_path / "file").read_text() == "x\n"


@pytest.mark.parametrize(
    ("failing", "why"),
    [
        (block("echo one\nfalse\necho two\n"), "it failed"),
        (block("echo one\n", "two"), "it printed\none\n\nand not\ntwo"),
        (block("echo oh >&2\n"), "it complains: oh"),
        (block("headrace up --nonsense\n"), "`headrace up --nonsense .*` is not ready: .*[Nn]o such option"),
        (block("headrace topic nonsense\n"), "it failed: .*nonsense"),
        (block("print(x)\n", language="python"), "NameError"),
        (block("def test_it():\n    assert False\n", language="python"), "it failed"),
        (block("no.such.setting=1\n", language="properties"), "there is no setting"),
        (block("x\n", language="cobol"), "nobody knows how to run cobol"),
        (
            block("$ echo one\none\n$ echo two\nthree\n", language="console"),
            "it printed\ntwo\n\nand not\nthree",
        ),
        (block("$ headrace topic nonsense\nfine\n", language="console"), "it failed"),
        (block("$ echo fine\nheadrace: not fine\n", language="console"), "it failed"),
        (block('{"a": 1}\n{"a": }\n', language="json"), "Expecting value"),
        (block("a: [1\n", language="yaml"), "expected"),
        (
            block("bootstrap.servers=127.0.0.1:1\nsecurity.protocol=TLS\n", language="properties"),
            "security.protocol",
        ),
    ],
)
def test_a_block_that_does_not_do_what_it_says_fails(reader: Reader, failing: Block, why: str) -> None:
    with pytest.raises(BlockFailed, match=rf"(?s)page.md:1 \(A\): .*{why}"):
        reader.run(failing)


def test_blocks_of_python_are_one_program(reader: Reader) -> None:
    reader.run(block("import sys\nnumber = 7\n", language="python"))
    reader.run(block("print(number, __name__)\n", "7 __main__", "python"))
    with pytest.raises(BlockFailed, match="it complains: oh"):
        reader.run(block("print('oh', file=sys.stderr, flush=True)\n", language="python"))


def test_commands_are_followed_by_their_outputs(reader: Reader) -> None:
    reader.run(
        block(
            "$ export X=1; echo $X\n1\n$ echo $X; \\\n  echo b\n1\nb\n$ echo not shown\n", language="console"
        )
    )
    reader.run(block("$ headrace topic nonsense\nheadrace: ...nonsense...\n", language="console"))


def test_settings_of_a_broker_that_does_not_start_are_a_mistake(reader: Reader) -> None:
    settings = "listeners=PLAINTEXT://127.0.0.1:9092\nlog.dirs=/var/lib/x\nzookeeper.connect=127.0.0.1:2181\n"
    started = block(settings, "ready bootstrap=127.0.0.1:9092", "properties")
    started.before = "headrace coordinator --data /tmp/zookeeper --port 2181"
    reader.run(started)
    refused = block(f"{settings}http.listener=0.0.0.0:8080\n", language="properties")
    refused.before = started.before
    with pytest.raises(BlockFailed, match="is not ready"):
        reader.run(refused)


def test_a_server_runs_in_another_terminal_until_the_next_one(reader: Reader) -> None:
    page = """## A
<!-- prints: ready bootstrap=127.0.0.1:9092 -->
```sh
headrace up --data /tmp/one --no-http   # until Ctrl-C
```

<!-- prints: ... -->
```sh
headrace topic create orders
headrace up --data /tmp/two --no-http
headrace topic list
```
"""
    first, second = blocks("page.md", page)
    reader.run(first)
    reader.run(second)
    reader.run(block("headrace topic list | grep orders || echo another cluster\n", "another cluster"))
    reader.finish()
    with pytest.raises(BlockFailed, match="no broker answers"):
        reader.run(block("headrace topic list\n"))


@pytest.mark.parametrize(
    ("printed", "expected", "in_order", "matches"),
    [
        ("a\nb\n", "a\nb", True, True),
        ("a\nb\n", "b\na", True, False),
        ("a\nb\n", "b\na", False, True),
        ("a\nb\nc\n", "b\na", False, False),
        ("a\n", "b\na", False, False),
        ("a\nc\nb\n", "b\n...\na", False, True),
        ("c\nb\n", "b\n...\na", False, False),
        ("pid 17, 3 ms\n", "pid ..., ... ms", True, True),
        ("pid 17\nmore\n", "pid ...", True, False),
        ("one\ntwo\nthree\n", "one\n...\nthree", True, True),
        ("one\nthree\n", "one\n...\nthree", True, True),
        ("one\n", "one\n...", True, True),
        ("(a.c)\n", "(abc)", True, False),
    ],
)
def test_output_is_compared_with_wildcards(
    printed: str, expected: str, *, in_order: bool, matches: bool
) -> None:
    assert is_expected(printed, expected, in_order=in_order) is matches


def test_numbers_may_differ() -> None:
    printed = "cluster Vw3fGmC64uTWofyJolzexA: 12 brokers,   2026-11-15T16:21:23Z, 1.5 s\n---------\n"
    expected = "cluster LRZvPBOntolki2HR63ZXWQ: 3 brokers, 2025-01-01T00:00:00Z, 10 s\n----\n"

    assert is_expected(printed, expected, numbers_differ=True)
    assert not is_expected(printed, expected)
    assert not is_expected(printed, expected.replace("brokers", "topics"), numbers_differ=True)
