"""Media types: what an answer is, for what a client accepts."""

import pytest

from headrace.gateway.problems import Problem
from headrace.gateway.rest.media import V2, accepted, answer_type, of_format, records_type


@pytest.mark.parametrize(
    ("accept", "kinds"),
    [
        (None, ["*/*"]),
        ("", ["*/*"]),
        ("text/html;q=0.5, Application/JSON", ["text/html", "application/json"]),
        ("text/html;q=0, */*;q=0.000", []),
        (",,", []),
    ],
)
def test_what_is_accepted(accept: str | None, kinds: list[str]) -> None:
    assert accepted(accept) == kinds


@pytest.mark.parametrize(
    ("accept", "answer"),
    [
        (None, V2),
        ("application/*", V2),
        ("application/vnd.kafka+json", V2),
        ("application/json", "application/json"),
        (of_format("avro"), V2),
    ],
)
def test_the_answers_type(accept: str | None, answer: str) -> None:
    assert answer_type(accept) == answer


@pytest.mark.parametrize(
    "accept", ["text/html", "application/json;q=0", ",", "application/vnd.kafka.v1+json"]
)
def test_there_may_be_none_that_would_do(accept: str) -> None:
    with pytest.raises(Problem) as refused:
        answer_type(accept)
    assert refused.value.code == 406


def test_records_are_in_the_format_they_are_held_in() -> None:
    assert records_type(None, "avro") == of_format("avro")
    assert records_type(of_format("avro"), "avro") == of_format("avro")
    assert records_type("application/json", "avro") == "application/json"
    for accept, code in ((of_format("json"), 40601), ("text/html", 406)):
        with pytest.raises(Problem) as refused:
            records_type(accept, "avro")
        assert refused.value.code == code
