"""What the transaction admin makes of the answers of brokers, in memory."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.client.errors import ClientError, Unreachable
from headrace.client.transactions.admin import GRACE_MS, MAX_TIMEOUT, STATE_TOPIC, TransactionAdmin
from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Address, NoAnswer
from headrace.client.wire.requests import Node, nodes_of
from headrace.protocol.errors import ErrorCode
from headrace.protocol.message import Message
from headrace.protocol.schema.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
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
from headrace.protocol.schema.list_transactions import ListTransactionsResponse
from headrace.protocol.schema.list_transactions import TransactionState as ListedTransaction
from headrace.protocol.schema.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from headrace.protocol.schema.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

TOPIC = "orders"
NOW_MS = 10 * GRACE_MS


class Cluster:
    """Two brokers. Broker 1 leads the topic's only partition, broker 2 coordinates every transaction."""

    def __init__(self) -> None:
        self.open_at: list[int | None] = [
            5
        ]  # start offsets, one for each time that it is described; the last stays
        self.last_timestamp_ms = 0
        self.enlisted = False  # whether the coordinator has the partition in its transaction
        self.lists: dict[int, ErrorCode] = {}
        self.list_version = 2
        self.markers: list[ErrorCode | NoAnswer] = []
        self.sent: list[tuple[int, int, Message]] = []  # broker, version, request

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
        for node, some in keys.items():
            found |= ask(node, some, Connection(self, node.id))
        return found

    def each(self, exchanges: Any, _within_s: float) -> dict[Node, Any]:
        found: dict[Node, Any] = {}
        for node, exchange in exchanges.items():
            try:
                found[node] = exchange(Connection(self, node.id))
            except NoAnswer as error:
                found[node] = error
        return found

    # -- answers --------------------------------------------------------------------------------

    def answer(self, broker: int, version: int, request: Message) -> Any:
        self.sent.append((broker, version, request))
        return getattr(self, f"_{type(request).__name__}")(broker)

    def _DescribeConfigsRequest(self, broker: int) -> DescribeConfigsResponse:  # noqa: N802
        config = DescribeConfigsResourceResult(
            name=MAX_TIMEOUT, value=str(1000 * broker), read_only=False, is_sensitive=False, synonyms=[]
        )
        result = DescribeConfigsResult(
            error_code=0, error_message=None, resource_type=4, resource_name=str(broker), configs=[config]
        )
        return DescribeConfigsResponse(results=[result])

    def _DescribeProducersRequest(self, broker: int) -> DescribeProducersResponse:  # noqa: N802
        assert broker == 1
        start = self.open_at.pop(0) if len(self.open_at) > 1 else self.open_at[0]
        producer = ProducerState(
            producer_id=7,
            producer_epoch=3,
            last_timestamp=self.last_timestamp_ms,
            coordinator_epoch=-1,
            current_txn_start_offset=-1 if start is None else start,
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
            transactional_id="id",
            transaction_state="Ongoing",
            transaction_timeout_ms=1000,
            transaction_start_time_ms=1,
            producer_id=7,
            producer_epoch=3,
            topics=[TopicData(topic=TOPIC, partitions=[0])] if self.enlisted else [],
        )
        return DescribeTransactionsResponse(transaction_states=[state])

    def _WriteTxnMarkersRequest(self, broker: int) -> WriteTxnMarkersResponse:  # noqa: N802
        assert broker == 1
        result = self.markers.pop(0)
        if isinstance(result, NoAnswer):
            raise result
        partition = WritableTxnMarkerPartitionResult(partition_index=0, error_code=result)
        topic = WritableTxnMarkerTopicResult(name=TOPIC, partitions=[partition])
        return WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=7, topics=[topic])])


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


def abort(admin: TransactionAdmin) -> None:
    admin.abort(TOPIC, 0, producer_id=7, producer_epoch=3, coordinator_epoch=0)


def test_a_transaction_that_the_coordinator_does_not_have_in_this_partition_hangs(
    admin: TransactionAdmin,
) -> None:
    (found,) = admin.find_hanging(min_duration_ms=0)

    assert (found.topic_partition, found.start_offset, found.transactional_id) == ((TOPIC, 0), 5, "id")


def test_a_transaction_that_the_coordinator_has_in_this_partition_does_not_hang(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.enlisted = True

    assert admin.find_hanging(min_duration_ms=0) == []


@pytest.mark.parametrize("then", [None, 9])
def test_a_transaction_that_ends_while_coordinators_are_asked_does_not_hang(
    cluster: Cluster, admin: TransactionAdmin, then: int | None
) -> None:
    cluster.open_at = [5, then]  # ended, or the next one of the same producer

    assert admin.find_hanging(min_duration_ms=0) == []


def test_nothing_is_said_to_hang_while_a_coordinator_does_not_answer(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.lists = {2: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}

    with pytest.raises(Unreachable, match="not all coordinators answer: broker 2 answers COORDINATOR_LOAD"):
        admin.find_hanging(min_duration_ms=0)


def test_the_longest_timeout_of_all_brokers_and_a_grace_is_the_limit(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.last_timestamp_ms = NOW_MS - 2000 - GRACE_MS + 1
    assert admin.find_hanging() == []
    cluster.last_timestamp_ms -= 1
    assert len(admin.find_hanging()) == 1


def test_a_list_lacks_brokers_that_do_not_answer_and_says_so(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.lists = {1: ErrorCode.COORDINATOR_NOT_AVAILABLE}

    found = admin.list_transactions()

    assert [each.transactional_id for each in found] == ["id"]
    assert found.missing == ("broker 1 answers COORDINATOR_NOT_AVAILABLE",)


def test_a_filter_that_a_broker_is_too_old_for_is_refused(cluster: Cluster, admin: TransactionAdmin) -> None:
    cluster.list_version = 0
    assert len(admin.list_transactions(states=["Ongoing"])) == 1
    with pytest.raises(ClientError, match=r"by min_duration_ms \(UNSUPPORTED_VERSION\)"):
        admin.list_transactions(min_duration_ms=0)
    cluster.list_version = 1
    assert len(admin.list_transactions(min_duration_ms=0)) == 1
    with pytest.raises(ClientError, match=r"by pattern \(UNSUPPORTED_VERSION\)"):
        admin.list_transactions(pattern="i.")


def test_a_marker_is_an_abort_without_a_transaction_version(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    cluster.markers = [ErrorCode.NONE]

    abort(admin)

    ((broker, version, request),) = cluster.sent
    assert isinstance(request, WriteTxnMarkersRequest)
    (marker,) = request.markers
    assert (broker, version, marker.transaction_result, marker.transaction_version) == (1, 1, False, 0)


def test_a_marker_that_was_not_written_is_sent_again(cluster: Cluster, admin: TransactionAdmin) -> None:
    unsent = NoAnswer("h:1 cannot be reached", sent=False)
    cluster.markers = [ErrorCode.NOT_LEADER_OR_FOLLOWER, unsent, ErrorCode.NONE]

    abort(admin)

    assert cluster.markers == []


def test_a_marker_that_may_have_been_written_is_not_sent_again(
    cluster: Cluster, admin: TransactionAdmin
) -> None:
    """It could abort the next transaction of the producer, which may have the same epoch."""
    cluster.markers = [NoAnswer("h:1 does not answer"), ErrorCode.NONE]

    with pytest.raises(Unreachable, match="the marker may have been written"):
        abort(admin)

    assert cluster.markers == [ErrorCode.NONE]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (ErrorCode.INVALID_PRODUCER_EPOCH, "producer 7: epoch 3 is fenced there"),
        (ErrorCode.TRANSACTION_COORDINATOR_FENCED, "producer 7: coordinator epoch 0 is fenced there"),
        (ErrorCode.REQUEST_TIMED_OUT, "not all in-sync replicas have it yet"),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "this user is not authorised"),
        (ErrorCode.UNKNOWN_SERVER_ERROR, "the marker is refused"),
    ],
)
def test_a_refusal_has_the_name_that_kafka_gives_it(
    cluster: Cluster, admin: TransactionAdmin, code: ErrorCode, said: str
) -> None:
    cluster.markers = [code]

    with pytest.raises(ClientError) as refused:
        abort(admin)

    assert said in str(refused.value)
    assert str(refused.value).endswith(f"({code.name})")
    assert refused.value.error_code is code
