"""A producer that librdkafka has given up on says so as any other failure."""

import pytest

from headrace import DeliveryFailed, Producer
from headrace.testing import Broker


@pytest.mark.parametrize("receipts", [False, True])
def test_a_fatal_error_is_a_failed_delivery(receipts: bool) -> None:
    """confluent-kafka raises it inside of a report about some record, which must not count as arrived."""
    with Broker(topics={"orders": 1}) as broker:
        producer = Producer(broker.bootstrap, receipts=receipts)
        with broker.faults.fail("Produce", error="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            for _ in range(10):
                producer.send("orders", b"x")
            with pytest.raises(DeliveryFailed) as failed:
                producer.flush(20)

        assert (failed.value.sent, failed.value.failed) == (10, 10)
        assert producer.counts.acknowledged == 0
        assert broker.records("orders") == []
        producer.close()
