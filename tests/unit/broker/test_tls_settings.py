"""The TLS settings of a listener."""

import pytest

from headrace.broker.config import BrokerConfig
from headrace.broker.tls import tls_settings

CHECKS = [("https", True), ("HTTPS", True), ("", False)]


@pytest.mark.parametrize(("algorithm", "is_checked"), CHECKS)
def test_an_empty_algorithm_means_that_host_names_are_not_checked(
    algorithm: str, *, is_checked: bool
) -> None:
    config = BrokerConfig.of({"ssl.endpoint.identification.algorithm": algorithm})

    assert tls_settings(config, "PLAINTEXT").checks_host is is_checked
