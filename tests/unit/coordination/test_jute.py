from struct import pack

import pytest

from headrace.coordination.embedded import jute
from headrace.coordination.embedded.errors import MalformedRequest
from headrace.coordination.embedded.jute import Reader


def test_what_is_written_is_read_back() -> None:
    written = jute.string("/ä") + jute.buffer(b"x") + jute.buffer(None) + jute.vector([jute.string("a")])
    reader = Reader(written)

    assert (reader.string(), reader.buffer(), reader.buffer()) == ("/ä", b"x", None)
    assert reader.vector(Reader.string) == ["a"]
    assert reader.left == 0


def test_an_absent_string_reads_as_empty() -> None:
    assert Reader(jute.NULL).string() == ""


@pytest.mark.parametrize(
    "hostile",
    [
        pack(">i", 2**31 - 1),  # more than there is
        pack(">i", -2),
        pack(">i", 5) + b"four",
        b"\0\0",
    ],
)
def test_a_length_that_lies_allocates_nothing(hostile: bytes) -> None:
    with pytest.raises(MalformedRequest):
        Reader(hostile).buffer()


def test_a_count_that_lies_builds_nothing() -> None:
    with pytest.raises(MalformedRequest, match="announced"):
        Reader(pack(">i", 2**30) + bytes(100)).vector(Reader.string)


def test_bytes_that_are_no_utf8_are_malformed() -> None:
    with pytest.raises(MalformedRequest):
        Reader(jute.buffer(b"\xff\xfe")).string()
