"""Topics that were deleted stay so, whatever the gateway's clients ask the brokers about."""

import pytest

from headrace.gateway.serving import serve_in_thread
from headrace.testing import Broker
from http_support.asking import Asking, v2

NEXT_LOOK_S = 30.0


@pytest.fixture
def broker() -> Broker:
    return Broker()


def test_a_deleted_topic_does_not_come_back_when_its_producer_looks_for_leaders(broker: Broker) -> None:
    with broker, serve_in_thread(broker.bootstrap) as served:
        asking = Asking(served.url)
        for name in ("deleted", "kept"):
            asking.post("/api/v1/topics", {"name": name, "partitions": 1})
            asking.post(f"/topics/{name}", {"records": [{"value": 1}]}, kind=v2("json"))
        asking.delete("/api/v1/topics/deleted")

        with broker.faults.delay(
            "Metadata", seconds=0, topic="deleted", client_id="headrace-gateway"
        ) as look:
            look.wait(timeout_s=NEXT_LOOK_S)

        assert asking.get("/topics") == ["kept"]
        asking.close()
