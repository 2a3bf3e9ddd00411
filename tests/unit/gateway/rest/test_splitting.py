"""JSON objects in a stream: found whole, however the bytes are cut."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.gateway.rest.splitter import NotAnObject, Splitter

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('{}[]"\\, \u00fc\n', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('{"\\', max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)


@given(
    objects=st.lists(OBJECTS, max_size=5),
    between=st.sampled_from([b"", b"\n", b" , ", b"\r\n\t"]),
    ascii_only=st.booleans(),
    cuts=st.lists(st.integers(0, 300), max_size=8),
)
def test_objects_are_found_however_the_stream_is_cut(
    objects: list[Any], between: bytes, cuts: list[int], *, ascii_only: bool
) -> None:
    stream = between.join(json.dumps(each, ensure_ascii=ascii_only).encode() for each in objects)
    edges = sorted({0, len(stream), *(cut for cut in cuts if cut < len(stream))})
    splitter = Splitter(10_000)
    found = [each for start, end in pairwise(edges) for each in splitter.feed(stream[start:end])]
    splitter.finish()
    assert [json.loads(each) for each in found] == objects


@pytest.mark.parametrize("stream", [b"[1]", b"1", b"nul", b'"x"', b"}", b"{} ]", b"\xff"])
def test_anything_but_an_object_is_refused(stream: bytes) -> None:
    splitter = Splitter(100)
    with pytest.raises(NotAnObject):
        list(splitter.feed(stream))


@pytest.mark.parametrize("stream", [b"{", b'{"a": "}', b'{"a": [}', b'{} {"b"', b'{"a": "\\"}'])
def test_a_stream_that_ends_in_an_object_is_not_whole(stream: bytes) -> None:
    splitter = Splitter(100)
    list(splitter.feed(stream))
    with pytest.raises(NotAnObject, match="ends in the middle"):
        splitter.finish()


def test_an_object_without_an_end_is_not_kept_forever() -> None:
    splitter = Splitter(1000)
    list(splitter.feed(b'{"a": "' + b"x" * 900))
    with pytest.raises(NotAnObject, match="more than 1,000 bytes"):
        list(splitter.feed(b"x" * 200))
