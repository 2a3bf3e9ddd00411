import pytest

from headrace.coordinators.partitioner import java_hash

JAVA = {  # what a Java virtual machine said that their String.hashCode is
    "": 0,
    "a": 97,
    "my-group": -1906497762,
    "console-consumer-12345": 158455506,
    "polygenelubricants": -2147483648,  # whose absolute value no int has; Kafka makes it 0
    "ünï-gröup": 1270670262,
    "😀": 1772899,
}


@pytest.mark.parametrize("text", JAVA)
def test_groups_are_spread_as_kafka_spreads_them(text: str) -> None:
    assert java_hash(text) == abs(JAVA[text]) % 2**31
