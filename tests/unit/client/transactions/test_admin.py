"""What the transaction admin makes of the answers of brokers, in memory."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.errors import ClientError
from headrace.client.transactions.admin import LIST_S, STATE_TOPIC, TransactionAdmin
from headrace.client.transactions.transaction import PartitionEnd, PartitionProducer
from headrace.client.wire.brokers import QUICK_S, Brokers
from headrace.client.wire.connection import Address, NoAnswer
from headrace.client.wire.requests import Node, nodes_of
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition
from headrace.protocol.message import Message
from headrace.protocol.schema.describe_producers import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from headrace.protocol.schema.describe_transactions import (
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from headrace.protocol.schema.find_coordinator import Coordinator, FindCoordinatorResponse
from headrace.protocol.schema.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from headrace.protocol.schema.list_transactions import ListTransactionsResponse
from headrace.protocol.schema.list_transactions import TransactionState as ListedTransaction
from headrace.protocol.schema.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

TOPIC = "orders"
NOW_MS = 3_000_000


class Cluster:
    """Two brokers. Broker 1 leads the topic's only partition, broker 2 coordinates every transaction."""

    def __init__(self) -> None:
        self.lists: dict[int, ErrorCode] = {}
        self.list_version = 2
        self.sent: list[tuple[int, int, Message]] = []  # broker, version, request
        self.within_s: list[float] = []  # how long each request to several brokers may take
        self.describes = ErrorCode.NONE  # what the coordinator answers to DescribeTransactions
        self.last_stable_offset, self.high_watermark = 5, 9

    # -- as Brokers -----------------------------------------------------------------------------

    def any_metadata(self, topics: Any = (), _within_s: float = 0) -> MetadataResponse:
        names = [TOPIC, STATE_TOPIC] if topics is None else list(topics)
        leaders = {TOPIC: 1, STATE_TOPIC: 2}
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=each, host="h", port=each) for each in (1, 2)],
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=0, leader_id=leaders[name], replica_nodes=[1], isr_nodes=[1]
                        )
                    ],
                )
                for name in names
            ],
        )

    def nodes(self) -> list[Node]:
        return nodes_of(self.any_metadata())

    def first(self, exchange: Callable[[Any], Any], _within_s: float) -> Any:
        return exchange(Connection(self, 1))

    def scatter(self, keys: Any, ask: Any, _within_s: float = 0) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        self.within_s.append(_within_s)
        for node, some in keys.items():
            found |= ask(node, some, Connection(self, node.id))
        return found

    def each(self, exchanges: Any, _within_s: float) -> dict[Node, Any]:
        found: dict[Node, Any] = {}
        self.within_s.append(_within_s)
        for node, exchange in exchanges.items():
            try:
                found[node] = exchange(Connection(self, node.id))
            except NoAnswer as error:
                found[node] = error
        return found

    # -- answers --------------------------------------------------------------------------------

    def answer(self, broker: int, version: int, request: Message) -> Any:
        self.sent.append((broker, version, request))
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(request)
        return getattr(self, f"_{type(request).__name__}")(broker)

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        offset = self.last_stable_offset if request.isolation_level else self.high_watermark
        self.high_watermark += 1  # a record arrives after each request
        partition = ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=offset)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=TOPIC, partitions=[partition])])

    def _DescribeProducersRequest(self, broker: int) -> DescribeProducersResponse:  # noqa: N802
        assert broker == 1
        producer = ProducerState(
            producer_id=7,
            producer_epoch=3,
            last_timestamp=0,
            coordinator_epoch=-1,
            current_txn_start_offset=5,
        )
        partition = PartitionResponse(partition_index=0, active_producers=[producer])
        return DescribeProducersResponse(topics=[TopicResponse(name=TOPIC, partitions=[partition])])

    def _ListTransactionsRequest(self, broker: int) -> ListTransactionsResponse:  # noqa: N802
        listed = ListedTransaction(transactional_id="id", producer_id=7, transaction_state="Ongoing")
        return ListTransactionsResponse(
            error_code=self.lists.get(broker, ErrorCode.NONE),
            unknown_state_filters=[],
            transaction_states=[listed] if broker == 2 else [],
        )

    def _FindCoordinatorRequest(self, _broker: int) -> FindCoordinatorResponse:  # noqa: N802
        coordinator = Coordinator(key="id", node_id=2, host="h", port=2, error_code=0, error_message=None)
        return FindCoordinatorResponse(coordinators=[coordinator])

    def _DescribeTransactionsRequest(self, broker: int) -> DescribeTransactionsResponse:  # noqa: N802
        assert broker == 2
        state = TransactionState(
            error_code=self.describes,
            transactional_id="id",
            transaction_state="Ongoing",
            transaction_timeout_ms=1000,
            transaction_start_time_ms=1,
            producer_id=7,
            producer_epoch=3,
            topics=[TopicData(topic=TOPIC, partitions=[0])],
        )
        return DescribeTransactionsResponse(transaction_states=[state])


class Connection:
    """A connection to one broker of a Cluster, which answers at once."""

    def __init__(self, cluster: Cluster, broker: int) -> None:
        self._cluster, self._broker = cluster, broker
        self.address = Address("h", broker)

    def version(self, _request: Message) -> int:
        return self._cluster.list_version

    def ask(self, request: Message) -> Any:
        return self.receive(self.send(request, self.version(request)))

    def send(self, request: Message, version: int) -> tuple[Message, int]:
        return request, version

    def receive(self, sent: tuple[Message, int]) -> Any:
        request, version = sent
        return self._cluster.answer(self._broker, version, request)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def admin(cluster: Cluster) -> TransactionAdmin:
    brokers: Any = cluster
    as_brokers: Brokers = brokers
    return TransactionAdmin(as_brokers, now_ms=lambda: NOW_MS)


def test_a_list_lacks_brokers_that_do_not_answer_and_says_so(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.lists = {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}

    found = admin.list_transactions()

    assert [each.transactional_id for each in found] == ["id"]
    assert found.missing == ("broker 1 answers COORDINATOR_NOT_AVAILABLE",)


@pytest.mark.parametrize(
    ("filters", "within_s"),
    [
        ({}, LIST_S),
        ({"pattern": ".*"}, LIST_S),
        ({"states": ["Ongoing", "Empty"]}, LIST_S),
        ({"states": ["Ongoing", "PrepareAbort"]}, QUICK_S),
        ({"min_duration_ms": 5}, QUICK_S),
        ({"producer_ids": [7]}, QUICK_S),
    ],
)
def test_a_broker_has_more_time_for_a_list_that_may_be_long(
    cluster: Cluster, admin: TransactionAdmin, filters: dict[str, Any], within_s: float
) -> None:
    admin.list_transactions(**filters)

    assert cluster.within_s == [within_s]


@pytest.mark.parametrize(
    ("code", "described"),
    [
        (ErrorCode.NONE, ["id"]),
        (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, []),
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, []),
    ],
)
def test_what_cannot_be_described_is_left_out(
    cluster: Cluster, admin: TransactionAdmin, code: ErrorCode, described: list[str]
) -> None:
    cluster.describes = code

    assert list(admin.describe_known(["id"])) == described


# -- producers of a partition ----------------------------------------------------------------------


def test_the_leader_of_a_partition_describes_its_producers(admin: TransactionAdmin) -> None:
    assert admin.describe_producers(TOPIC, 0) == [
        PartitionProducer(
            producer_id=7,
            producer_epoch=3,
            last_sequence=None,
            last_timestamp_ms=0,
            coordinator_epoch=None,
            start_offset=5,
        )
    ]


def test_the_last_stable_offset_is_read_before_the_high_watermark(admin: TransactionAdmin) -> None:
    """Otherwise a record that is committed in between would make it the larger one."""
    partition = TopicPartition(TOPIC, 0)

    assert admin.ends([partition]) == {partition: PartitionEnd(high_watermark=10, last_stable_offset=5)}
    assert admin.ends([]) == {}


def test_a_filter_that_a_broker_is_too_old_for_is_refused(cluster: Cluster, admin: TransactionAdmin) -> None:
    cluster.list_version = 0
    assert len(admin.list_transactions(states=["Ongoing"])) == 1
    with pytest.raises(ClientError, match=r"by min_duration_ms \(UNSUPPORTED_VERSION\)"):
        admin.list_transactions(min_duration_ms=0)
    cluster.list_version = 1
    assert len(admin.list_transactions(min_duration_ms=0)) == 1
    with pytest.raises(ClientError, match=r"by pattern \(UNSUPPORTED_VERSION\)"):
        admin.list_transactions(pattern="i.")
