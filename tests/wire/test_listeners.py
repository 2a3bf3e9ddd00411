"""Two brokers with two listeners each: clients see the addresses of theirs, brokers use the other one."""

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from headrace.broker.server import Broker
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.embedded.server import Coordinator
from headrace.protocol.between_brokers.update_metadata import FULL, UpdateMetadataRequest
from headrace.protocol.errors import ErrorCode
from headrace.protocol.schema.create_topics import CreatableTopic, CreateTopicsRequest
from headrace.protocol.schema.describe_cluster import DescribeClusterRequest
from headrace.protocol.schema.envelope import EnvelopeRequest
from headrace.protocol.schema.fetch import FetchRequest, ReplicaState
from headrace.protocol.schema.metadata import MetadataRequest
from headrace.testing.loop_thread import LoopThread
from wire.confluent import send, sent_offsets
from wire.raw import RawClient
from wire.requests import fresh_name

SETTINGS = {
    "listeners": "EXTERNAL://127.0.0.1:0,INTERNAL://127.0.0.1:0",
    "listener.security.protocol.map": "EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "INTERNAL",
}
Addresses = dict[str, list[str]]


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    """The address of each broker, by listener."""
    thread, stack = LoopThread("listeners", stop_at_exit=lambda: None), AsyncExitStack()
    thread.start()
    try:
        brokers = thread.run(start(tmp_path_factory.mktemp("listeners"), stack))
        endpoints = [endpoint for broker in brokers for endpoint in broker.endpoints]
        yield {
            name: [each.address for each in endpoints if each.name == name]
            for name in ("EXTERNAL", "INTERNAL")
        }
        thread.run(stack.aclose())
    finally:
        thread.stop()


async def start(root: Path, stack: AsyncExitStack) -> list[Broker]:
    coordinator = await stack.enter_async_context(Coordinator(root / "coordinator", port=0, sync=False))
    brokers = []
    for broker_id in ("1", "2"):
        own = {"broker.id": broker_id, "log.dirs": str(root / broker_id)}
        broker = Broker(BrokerConfig.of(SETTINGS | own | {"zookeeper.connect": coordinator.address}))
        await broker.start()
        stack.push_async_callback(broker.stop)
        brokers.append(broker)
    return brokers


@pytest.mark.parametrize("listener", ["EXTERNAL", "INTERNAL"])
def test_clients_are_told_the_addresses_of_their_own_listener(addresses: Addresses, listener: str) -> None:
    expected = [int(address.rpartition(":")[2]) for address in addresses[listener]]
    with RawClient(addresses[listener][0]) as client:
        metadata = client.ask(MetadataRequest(topics=[]), 12)
        cluster = client.ask(DescribeClusterRequest(include_cluster_authorized_operations=False), 0)

    assert [each.port for each in metadata.brokers] == expected
    assert [each.port for each in cluster.brokers] == expected


def test_a_request_for_the_controller_may_go_to_any_broker_and_followers_use_their_listener(
    addresses: Addresses,
) -> None:
    for bootstrap in addresses["EXTERNAL"]:
        good, bad = fresh_name("forwarded"), "no name"
        topics = [
            CreatableTopic(name=name, num_partitions=1, replication_factor=2, assignments=[], configs=[])
            for name in (good, bad)
        ]
        with RawClient(bootstrap) as client:
            response = client.ask(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        reports = send(bootstrap, good, [{"value": b"replicated"}], acks="all")

        codes = {each.name: each.error_code for each in response.topics}
        assert codes == {good: ErrorCode.NONE, bad: ErrorCode.INVALID_TOPIC_EXCEPTION}
        assert sent_offsets(reports) == [0]


UPDATE = UpdateMetadataRequest(
    controller_id=1, type=FULL, controller_epoch=0, topic_states=[], live_brokers=[]
)
ENVELOPE = EnvelopeRequest(request_data=b"", request_principal=None, client_host_address=b"")


@pytest.mark.parametrize(("request_", "version"), [(UPDATE, 8), (ENVELOPE, 0)])
def test_messages_among_brokers_are_refused_on_other_listeners(
    addresses: Addresses, request_: UpdateMetadataRequest | EnvelopeRequest, version: int
) -> None:
    with RawClient(addresses["EXTERNAL"][0]) as client:
        client.send(request_, version)
        assert client.is_closed_by_the_broker()


def test_followers_fetch_from_the_inter_broker_listener_only(addresses: Addresses) -> None:
    follower = FetchRequest(
        max_wait_ms=0, min_bytes=0, topics=[], replica_state=ReplicaState(replica_id=2, replica_epoch=1)
    )
    codes = {}
    for listener, (first, *_) in addresses.items():
        with RawClient(first) as client:
            codes[listener] = client.ask(follower, 17).error_code

    assert codes == {"EXTERNAL": ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "INTERNAL": ErrorCode.NONE}


def test_messages_among_brokers_are_read_on_their_listener(addresses: Addresses) -> None:
    with RawClient(addresses["INTERNAL"][0]) as client:
        assert client.ask(UPDATE, 8).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
