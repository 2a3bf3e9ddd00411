"""Properties files, as Java reads them."""

import pytest

from headrace.client.properties import InvalidProperties, parse_properties, to_properties


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1\nb = 2 \n", {"a": "1", "b": "2"}),
        ("a:1\n\tb\t:\t2", {"a": "1", "b": "2"}),
        ("# a=1\n! b=2\n\n  \nc=3", {"c": "3"}),
        ("a=", {"a": ""}),
        ("a=1\na=2", {"a": "2"}),
        ("a=x=y:z", {"a": "x=y:z"}),
        (
            'jaas=Module required \\\n    user="x" \\\n  password="y";',
            {"jaas": 'Module required user="x" password="y";'},
        ),
        ("a=one\\\n# no comment", {"a": "one# no comment"}),
        (r"a=back\\slash", {"a": r"back\slash"}),
        ("a=end\\\\\nb=2", {"a": "end\\", "b": "2"}),
        (r"a=\u00e4\t\n", {"a": "ä"}),
        (r"a=x\ny", {"a": "x\ny"}),
        (r"a\=b=1", {"a=b": "1"}),
        ("a=1\r\nb=2\r\n", {"a": "1", "b": "2"}),
        ("\ufeffa=1", {"a": "1"}),
        ("a=last line continues\\", {"a": "last line continues"}),
    ],
)
def test_java_rules_apply(text: str, values: dict[str, str]) -> None:
    assert parse_properties(text, "f") == values


def test_an_invalid_line_is_named_by_its_number_and_not_shown() -> None:
    with pytest.raises(InvalidProperties) as raised:
        parse_properties("a=1\n\nsasl.password hunter2\n", "client.properties")
    assert str(raised.value) == "client.properties, line 3: expected NAME=VALUE"


def test_written_values_are_read_back() -> None:
    values = {"a": "1", "password": 'back\\slash "quoted"', "pem": "-----BEGIN\nabc\n-----END\n".strip()}
    assert parse_properties(to_properties(values), "f") == values
