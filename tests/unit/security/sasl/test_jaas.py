"""JAAS files have sections, comments and quotes."""

import pytest

from headrace.security.sasl.jaas import jaas_options, jaas_quoted, jaas_section

FILE = """
/* The server's users: Server { user_eve="no"; }; */
Server {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    user_super="a}b;{\\"c" // Client { username="comment"; };
    user_bob="b//c";
};
# Client { username="old"; };
Client { org.apache.zookeeper.server.auth.DigestLoginModule required username="bob" password='b//c'; };
"""


def test_each_section_has_its_own_options() -> None:
    assert jaas_section(FILE, "Server") == {"user_super": 'a}b;{"c', "user_bob": "b//c"}
    assert jaas_section(FILE, "Client") == {"username": "bob", "password": "b//c"}
    assert jaas_section(FILE, "KafkaServer") is None
    assert jaas_section("", "Client") is None


@pytest.mark.parametrize("value", ["plain", 'a"b', "back\\slash", "a;b}c", "ünïcode"])
def test_a_quoted_value_is_read_back(value: str) -> None:
    assert jaas_options(f"module required password={jaas_quoted(value)};")["password"] == value
