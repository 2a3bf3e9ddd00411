"""The scan lets no text pass that Python would refuse, and passes ordinary ones without Python."""

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.tables.reader.json_scan import odd_texts
from headrace.tables.registry.json_rows import members

NAMES = st.sampled_from(["a", "b", "é", "", 'a"', "\\", "a:{"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(["1", "-2.5e3", "true", "null", '"}"', '"\\"a\\": 1"', "'a'"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: f"[{','.join(values)}]"),
        st.lists(st.tuples(NAMES.map(json.dumps), inner), max_size=4).map(
            lambda pairs: f"{{{', '.join(f'{name} : {value}' for name, value in pairs)}}}"
        ),
    ),
    max_leaves=12,
)
DECODER = json.JSONDecoder(object_pairs_hook=members)


def is_odd(text: str) -> bool:
    return bool(odd_texts(pa.array(["{}", text, None]).slice(1))[0])


def refusal(text: str) -> str:
    try:
        DECODER.decode(text)
    except ValueError as error:
        return str(error)
    return ""


@given(
    name=NAMES.map(json.dumps),
    values=st.lists(VALUES, min_size=1, max_size=2),
    after=st.sampled_from(["", " \n", "x"]),
)
def test_a_text_that_passes_has_each_key_once_and_nothing_after_it(
    name: str, values: list[str], after: str
) -> None:
    text = "{" + ",".join(f"{name}: {value}" for value in values) + "}" + after
    # What neither Python nor Spark reads may pass: Spark refuses it.
    assert is_odd(text) or not any(said in refusal(text) for said in ("twice", "Extra data"))


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": {"a": [{"a": "}"}, {"a": 2}], "b": {}}, "c": "\\"a\\": 1"}',
        " { 'a' : 1 }\r\n",
        "",
        json.dumps({f"key {number}": number for number in range(100)}),
    ],
)
def test_an_ordinary_text_passes(text: str) -> None:
    assert not is_odd(text)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 1}',
        '{"a": 1, "\\u0061": 2}',
        '{"b": {"a": 1, "b": {"a": 2}, "a": 3}}',
        "{\"a\": 1, 'a': 2}",
        '{"a": 1} {"a": 2}',
        "[" * 40 + "]" * 40,
        json.dumps({f"key {number}": number for number in range(1_000)}),
    ],
)
def test_a_text_that_python_has_to_look_at_does_not_pass(text: str) -> None:
    assert is_odd(text)
