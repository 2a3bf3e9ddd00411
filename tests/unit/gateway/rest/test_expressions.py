"""Expressions that select messages: what they match, and what becomes of hostile ones."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace.client.errors import ClientError
from headrace.client.records.one_by_one import Record
from headrace.client.serializers.codecs.processes import CodecProcesses, Matched
from headrace.gateway.admin.display import RecordFilter


def message(value: Any = None, key: Any = None, **others: Any) -> dict[str, Any]:
    usual = {"headers": {}, "partition": 0, "offset": 7, "timestamp_ms": 1_700_000_000_000}
    return {"key": key, "value": value, **usual, **others}


@pytest.fixture(scope="module")
def processes() -> Iterator[CodecProcesses]:
    made = CodecProcesses(cpu_s=0.5)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("expression", "given", "matches"),
    [
        ("value.total > 100", message({"total": 101}), True),
        ("value.total > 100", message({"total": 100}), False),
        ("value.total > 100.5", message({"total": 101}), True),
        ('key == "eu" && value.l.exists(i, i.sku == "tea")', message({"l": [{"sku": "tea"}]}, "eu"), True),
        ('headers["source"] == "web"', message(headers={"source": "web"}), True),
        ("has(value.gone)", message({"total": 1}), False),
        ("value == null", message(None), True),
        ("partition == 0 && offset >= 7", message(), True),
        ('time > timestamp("2023-01-01T00:00:00Z")', message(), True),
        ('value.matches("^a+$")', message("aaa"), True),
        ('value.total > 1 && key.startsWith("eu-")', message({"total": 0}), False),
        ('value.gone > 1 || key == "eu"', message({"total": 0}, "eu"), True),
    ],
)  # fmt: skip
def test_an_expression_matches_what_it_says(
    processes: CodecProcesses, expression: str, given: dict[str, Any], matches: bool
) -> None:
    assert processes.match(expression, [given]).found == [matches]


@pytest.mark.parametrize(
    ("expression", "given", "why"),
    [
        ("value.total > 100", message("only text"), "no such overload"),
        ("value.total > 100", message({"other": 1}), "there is no 'total'"),
        ('headers["source"] == "web"', message(), "there is no 'source'"),
        ("value.total > 100", message({"total": "many"}), "no such overload"),
        ("value.total + 1 > 2", message({"total": 1.5}), "unsupported operation: double + int"),
        ("value.total / 0 == 1", message({"total": 1}), "division by zero in CEL expression"),
        ("value.l[3] == 1", message({"l": [1]}), "index out of bounds: 3"),
        ('key.startsWith("eu-")', message({"total": 1}), "startsWith does not take a value of this type"),
        ("size(value.total) > 1", message({"total": 1}), "size does not take a value of this type"),
        ("timestamp(value.at) < time", message({"at": "x"}), "function 'timestamp' error"),
        ("int(value.n) > 3", message({"n": "x"}), "function 'int' error"),
        ('value.matches("(")', message("a"), "function 'matches' error: '(' not a valid regex"),
        ('time > timestamp("2023-01-01T00:00:00Z")', message(timestamp_ms=None), "no such overload"),
    ],
)
def test_a_message_to_which_an_expression_cannot_be_applied_does_not_match(
    processes: CodecProcesses, expression: str, given: dict[str, Any], why: str
) -> None:
    found, reason = processes.match(expression, [message({"total": 0}), given])
    assert found[1] is None
    assert processes.match(expression, [given]).reason.startswith(why), reason


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("value.total >", "Syntax error"),
        (
            "valeu.total > 1",
            "there is no variable or function 'valeu': the variables are key, value, headers",
        ),
        ("valeu(value) > 1", "there is no variable or function 'valeu'"),
        ("value.total", "its result is of type int: expected true or false"),
        ("value", "its result is of type map: expected true or false"),
        ("key", "its result is of type null: expected true or false"),
        ("x" * 2001, "it has more than 2,000 characters"),
        ("(" * 900 + "1" + ")" * 900, "at 1:97: Recursion limit of 96 exceeded"),
        (r"key == '\ud800'", "at 1:8: invalid string literal: InvalidUnicode"),
    ],
)
def test_an_expression_that_cannot_be_used_is_refused_with_a_sentence(
    processes: CodecProcesses, expression: str, why: str
) -> None:
    with pytest.raises(ClientError, match="the filter is not valid") as caught:
        processes.match(expression, [message({"total": 1})])
    assert why in str(caught.value)


def test_an_expression_is_checked_without_messages(processes: CodecProcesses) -> None:
    assert processes.match("value.total > 1", []).found == []
    with pytest.raises(ClientError, match="Syntax error"):
        processes.match("value.total >", [])


def test_an_expression_that_loops_for_too_long_is_refused_and_others_go_on(processes: CodecProcesses) -> None:
    numbers = {"l": list(range(200))}
    loops = "value.l.all(a, value.l.all(b, value.l.all(c, value.l.all(d, a + b + c + d >= 0))))"
    with pytest.raises(ClientError, match="the filter takes too much CPU time or memory"):
        processes.match(loops, [message(numbers)])
    assert processes.match("size(value.l) == 200", [message(numbers)]).found == [True]


def test_an_expression_that_takes_too_much_memory_is_refused(processes: CodecProcesses) -> None:
    doubles = "value" + "".join(f".map(x{n}, [x{n}, x{n}, x{n}, x{n}].map(y{n}, value))" for n in range(40))
    with pytest.raises(ClientError, match="the filter"):
        processes.match(f"size({doubles}) > 0", [message(["x" * 1000] * 50)])


def test_a_key_a_text_and_an_expression_all_have_to_match() -> None:
    asked: list[Any] = []

    def match(messages: Any) -> Matched:
        asked.extend(each["offset"] for each in messages)
        return Matched(
            [None if each["value"]["n"] == 3 else each["value"]["n"] == 2 for each in messages], "why"
        )

    records = [
        Record(key=b"a", value=b'{"n": %d, "t": "tea"}' % number, offset=number, partition=0)
        for number in range(4)
    ]
    records.append(Record(key=b"b", value=b'{"n": 2, "t": "tea"}', offset=9, partition=0))
    selecting = RecordFilter("a", "TEA", match=match)
    assert selecting.select(records) == [False, False, True, False, False]
    assert selecting.filter_error == "why"
    assert asked == [0, 1, 2, 3]
