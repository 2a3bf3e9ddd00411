"""What connections take is given back when they are quiet, and when they are closed."""

from contextlib import ExitStack

from headrace.protocol.schema.metadata import MetadataRequest
from wire.process import BrokerProcess
from wire.raw import RawClient

MANY = 1000
MEBIBYTE = 2**20


def test_the_memory_of_closed_connections_goes_back_to_the_system(own_broker: BrokerProcess) -> None:
    """It was 68 KiB for each, for as long as the broker lived."""
    before = own_broker.rss_bytes
    with ExitStack() as stack:
        for _ in range(MANY):
            client = stack.enter_context(RawClient(own_broker.bootstrap))
            client.ask(MetadataRequest(topics=None), 12)
    with RawClient(own_broker.bootstrap) as client:  # handled after all ends
        client.ask(MetadataRequest(topics=None), 12)

    assert own_broker.rss_bytes - before < 40 * MEBIBYTE
