"""Settings of a secured cluster, used with a Headrace broker, which has neither TLS nor SASL."""

from collections.abc import Iterator
from typing import Final

import pytest

from headrace.client.errors import ClientError
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection_settings import ConnectionSettings
from headrace.client.wire.security import Security
from headrace.protocol.schema.metadata import MetadataRequest
from wire.process import BrokerProcess

USER: Final = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": "secret"}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    with BrokerProcess(tmp_path_factory.mktemp("broker")) as process:
        yield process
        assert process.complaints() == []


@pytest.mark.parametrize(
    ("protocol", "says"),
    [
        ("SASL_PLAINTEXT", "{at} knows no SASL: is security.protocol right?"),
        (
            "SSL",
            (
                "no broker answers at {at}: {at} cannot be reached: the broker closed the connection; "
                "is security.protocol=SSL right?"
            ),
        ),
    ],
)
def test_a_broker_without_security_is_told_from_one_that_is_away(
    broker: BrokerProcess, protocol: str, says: str
) -> None:
    security = Security.of(USER | {"security.protocol": protocol})
    with (
        Brokers(ConnectionSettings(broker.bootstrap, security)) as brokers,
        pytest.raises(ClientError) as raised,
    ):
        brokers.any(MetadataRequest(topics=[]))

    assert str(raised.value) == says.format(at=broker.bootstrap)
