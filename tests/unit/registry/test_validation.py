"""Rules about schemas, as topics' settings have them: parsed by a broker, or as text over the wire."""

import pytest

from headrace.registry.validation import (
    KEY,
    KEY_STRATEGY,
    VALUE,
    VALUE_STRATEGY,
    KnownSchemas,
    Rule,
    Strategy,
    invalid_records,
)


@pytest.mark.parametrize("on", [True, "true", "TRUE"])
def test_a_rule_is_the_same_from_text_and_from_what_was_parsed(on: object) -> None:
    assert Rule.of({KEY: on, VALUE: False}) == Rule(keys=Strategy.TOPIC, values=None)
    assert Rule.of({VALUE: on, VALUE_STRATEGY: str(Strategy.RECORD)}) == Rule(None, Strategy.RECORD)


@pytest.mark.parametrize("values", [{}, {KEY: "false", VALUE: "false"}, {VALUE: None}, {VALUE: ""}])
def test_who_asks_for_nothing_has_no_rule(values: dict[str, object]) -> None:
    assert Rule.of(values) is None


def test_a_strategy_that_nobody_knows_is_an_error_where_it_is_used() -> None:
    with pytest.raises(ValueError, match=r"com\.example"):
        Rule.of({KEY: "true", KEY_STRATEGY: "com.example.Own"})
    assert Rule.of({KEY: "false", KEY_STRATEGY: "com.example.Own"}) is None


def test_every_bad_record_is_named_unless_somebody_wants_fewer() -> None:
    rule, known = Rule(keys=None, values=Strategy.TOPIC), KnownSchemas((), {7}, {})
    records = [(None, value, ()) for value in (b"\0\0\0\0\x07", b"x", None, b"\0\0\0\0\x08")]

    assert [place for place, _ in invalid_records("t", rule, records, known)] == [1, 3]
    assert [place for place, _ in invalid_records("t", rule, records, known, most=1)] == [1]
