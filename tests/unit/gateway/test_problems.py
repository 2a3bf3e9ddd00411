"""Values of headers that say what is missing from a list."""

from headrace.gateway.problems import MISSING_SHOWN, header_text


def test_the_reasons_of_a_header_are_ascii() -> None:
    assert header_text(["broker 1 answers X", "größe"]) == "broker 1 answers X; gr??e"


def test_a_header_has_a_bounded_number_of_reasons() -> None:
    reasons = [f"orders-{number}: no leader" for number in range(10_000)]
    found = header_text(reasons).split("; ")
    assert found == [*reasons[:MISSING_SHOWN], f"and {10_000 - MISSING_SHOWN} more"]
