"""Any name of a subject as that of a znode."""

import json

import pytest

from headrace.coordination.schema_znodes import LARGEST, SchemaSubject, SchemaText, node_name


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("orders-value", "orders-value"),
        ("com.acme.Order", "com.acme.Order"),
        ("a/b c", "a%2Fb%20c"),
        (".", "%2E"),
        ("..", "%2E%2E"),
        ("", "%"),
        ("\ud800", "%5Cud800"),  # no text at all, and yet somebody has sent it
    ],
)
def test_a_name_is_one_that_zookeeper_takes(name: str, expected: str) -> None:
    assert node_name(name) == expected


def test_what_is_written_is_json_whatever_it_holds() -> None:
    text = SchemaText(name="1", kind="AVRO", text='"\ud800"', references=[])
    subject = SchemaSubject(subject="\ud800", versions={1: 7}, deleted=[])

    assert json.loads(text.encode())["schema"] == '"\ud800"'
    assert json.loads(subject.encode())["versions"] == {"1": 7}


def test_a_text_that_is_too_large_is_left_to_the_topic() -> None:
    text = SchemaText(name="1", kind="AVRO", text="x" * (LARGEST + 1), references=[])

    assert json.loads(text.encode())["schema"] is None
