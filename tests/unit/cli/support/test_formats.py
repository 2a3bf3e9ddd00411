"""Formats, escapes and delimiters, without a broker."""

import io
import json

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.cli.support import formats
from headrace.client.records.one_by_one import Record

RECORD = Record(
    value=b"v", key=None, headers=[("h", b"1"), ("i", None)], partition=2, timestamp_ms=5, topic="t", offset=7
)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (r"%v\n", b"v\n"),
        ("%k|%v", b"|v"),
        ("%t-%p@%o %T %m", b"t-2@7 1970-01-01T00:00:00.005Z 5"),
        ("%h", b"h=1,i="),
        ("%K %S", b"-1 1"),
        ("100%% %v%%", b"100% v%"),
        ("%%%v%%%%", b"%v%%"),
        (r"\t\0\x00\xff\\n", b"\t\0\0\xff\\n"),
        (r"\q é", b"\\q \xc3\xa9"),
        ("", b""),
    ],
)
def test_a_format_prints_a_record(text: str, printed: bytes) -> None:
    assert formats.compile_format(text)(RECORD) == printed


@pytest.mark.parametrize("text", ["%", "%q", "a%", r"\xg1", r"\x1"])
def test_a_format_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(click.UsageError):
        formats.compile_format(text)


_bytes = st.none() | st.binary(max_size=20)


@given(_bytes, _bytes, st.lists(st.tuples(st.text(max_size=5), _bytes), max_size=3))
def test_a_record_survives_json(
    value: bytes | None, key: bytes | None, headers: list[tuple[str, bytes]]
) -> None:
    record = Record(value=value, key=key, headers=headers, timestamp_ms=12)
    line = formats.to_json(formats.Shown(record))
    assert line.count(b"\n") == 1
    assert formats.from_json(line, 1) == record


@pytest.mark.parametrize("line", [b"", b"[]", b"1", b"{}", b'{"value": 1}', b'{"value": {"base64": "?"}}'])
def test_a_line_that_is_no_record_is_named(line: bytes) -> None:
    with pytest.raises(formats.BadInput, match="line 3: expected an object"):
        formats.from_json(line, 3)


@given(st.binary(max_size=200), st.sampled_from([b"\n", b"\0", b"ab", b"aab"]), st.integers(1, 7))
def test_splitting_a_stream_is_splitting_its_bytes(data: bytes, delimiter: bytes, chunk: int) -> None:
    expected = data.split(delimiter)
    assert list(formats.split(_Trickle(data, chunk), delimiter)) == (
        expected if expected[-1] else expected[:-1]
    )


def test_a_record_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "LONGEST", 100)
    with pytest.raises(formats.BadInput, match="a record has more than 100 bytes"):
        list(formats.split(_Trickle(b"x" * 200, 50), b"\n"))


def test_json_keeps_letters_readable() -> None:
    assert json.loads(formats.to_json(formats.Shown(Record(value="grün".encode()))))["value"] == "grün"
    assert "grün".encode() in formats.to_json(formats.Shown(Record(value="grün".encode())))


class _Trickle(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    def __init__(self, data: bytes, chunk: int) -> None:
        super().__init__(data)
        self._chunk = chunk

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(min(self._chunk, size or self._chunk))
