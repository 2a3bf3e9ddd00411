"""Where a server that listens everywhere is found."""

import pytest

from headrace.system.addresses import reachable, written


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("::", "::1"),
        ("0::0", "::1"),
        ("::1", "::1"),
        ("192.0.2.1", "192.0.2.1"),
        ("broker.example", "broker.example"),
    ],
)
def test_every_address_is_told_as_the_loopback_of_its_family(host: str, told: str) -> None:
    assert reachable(host) == told


def test_a_host_with_colons_is_bracketed() -> None:
    assert (written("::1", 9092), written("127.0.0.1", 9092)) == ("[::1]:9092", "127.0.0.1:9092")
