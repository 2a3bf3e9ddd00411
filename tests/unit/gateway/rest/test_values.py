"""Keys and values: from JSON to bytes, and from bytes to what people read."""

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.client.serializers.codecs.base import BadValue
from headrace.client.serializers.codecs.plain_json import MAX_DEPTH, NotJson, read_json, write_json
from headrace.client.serializers.formats import JSON as JSON_FORMAT
from headrace.gateway.rest.values import Decoded, as_binary, as_given, as_json, as_text, cut, decode

JSON: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_json_comes_back_as_it_was(value: Any) -> None:
    assert read_json(write_json(value)) == value


@pytest.mark.parametrize("text", ["NaN", "[1e999]", "-Infinity", "{", "", "[" * 100_000, "\ufeff1"])
def test_what_others_could_not_read_is_not_json(text: str) -> None:
    with pytest.raises(NotJson):
        read_json(text)


def test_nesting_has_a_bound() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH - 1):
        deep = [deep]
    assert read_json(write_json(deep)) == deep
    with pytest.raises(NotJson, match="nested"):
        read_json(write_json([[deep]]))


@given(JSON)
def test_a_key_from_the_gateway_has_the_bytes_that_the_sdk_gives_it(value: Any) -> None:
    assert (as_json(value) or b"null") == JSON_FORMAT.serialize(value, "t", "key", None)


def test_half_a_surrogate_pair_is_escaped_and_comes_back() -> None:
    assert as_json(["\ud83d", "é"]) == b'["\\ud83d","\\u00e9"]'


def test_what_is_too_deep_to_be_read_again_is_not_written() -> None:
    deep: Any = 1
    for _ in range(MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(BadValue, match="nested more than 200 deep"):
        as_json(deep)


@given(st.binary())
def test_every_value_can_be_shown(data: bytes) -> None:
    found = decode(data)
    match found.encoding:
        case "base64":
            assert base64.b64decode(found.value) == data
        case "text":
            assert found.value.encode() == data
        case _:
            assert found == Decoded(value=read_json(data), encoding="json")
    write_json(found.value)  # and sent


@given(st.binary(max_size=40), st.integers(0, 40))
def test_what_is_cut_says_so(data: bytes, most: int) -> None:
    found, is_cut = cut(data, most)
    assert is_cut == (len(data) > most)
    if is_cut and found.encoding == "text":
        assert data.startswith(found.value.encode())


@given(st.binary())
def test_base64_is_taken_in_both_alphabets(data: bytes) -> None:
    assert as_binary(base64.b64encode(data).decode()) == data
    assert as_binary(base64.urlsafe_b64encode(data).decode()) == data


@pytest.mark.parametrize("value", ["?", "YQ", "Y Q==", "YQ==\n", "ü", 1, [], {}, True])
def test_what_is_not_base64_is_refused(value: Any) -> None:
    with pytest.raises(BadValue):
        as_binary(value)


def test_null_is_no_value_at_all() -> None:
    assert as_json(None) is as_text(None) is as_binary(None) is as_given(None) is None


def test_a_string_is_text_unless_json_is_asked_for() -> None:
    assert as_given("x") == as_text("x") == b"x"
    assert as_json("x") == b'"x"'
    assert as_given({"a": [1]}) == b'{"a":[1]}'
    others: list[Any] = [1, [], True]
    for value in others:
        with pytest.raises(BadValue, match="expected a string"):
            as_text(value)
