"""Transactions of a cluster: what `headrace txn` does.

TransactionAdmin(Brokers("127.0.0.1:9092")).find_hanging()
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from headrace.client.errors import (
    ADVICE,
    BadSetting,
    ClientError,
    NoSuchPartition,
    NoSuchTopic,
    NoSuchTransactionalId,
    Retriable,
    Unreachable,
    error_name,
    raise_for,
    why_no_topic,
)
from headrace.client.settings import LAST_OFFSET, LAST_PARTITION, whole
from headrace.client.transactions.transaction import (
    OPEN_STATES,
    STATES,
    ActiveProducer,
    OpenTransaction,
    PartitionEnd,
    PartitionProducer,
    Transaction,
    TransactionSummary,
    active_producers,
    open_for,
    open_transactions,
    producer_of,
    transaction_of,
    unknown_to_coordinators,
)
from headrace.client.wire.brokers import PARTIAL_S, QUESTION_S, QUICK_S, SILENT_S, Brokers, read_lists
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.offsets import leaders, read_offsets
from headrace.client.wire.requests import BROKER, LATEST, Node, describe_configs_request, leaders_of, nodes_of
from headrace.client.wire.retry import Answers, Backoff, Known, Unanswered, ask_owners, retry, unanswered
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from headrace.protocol.schema.list_transactions import TransactionState as ListedTransaction
from headrace.protocol.schema.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

STATE_TOPIC: Final = "__transaction_state"  # the leaders of its partitions coordinate the transactions
MAX_TIMEOUT: Final = "transaction.max.timeout.ms"
GRACE_MS: Final = 5 * 60 * 1000  # for a coordinator to abort after the timeout, as in Kafka's tool
LIST_S: Final = 10.0  # for a list that may be long: a broker takes seconds for 100,000 transactional ids
KEYS_PER_S: Final = 1000  # transactional ids or partitions that a broker describes, with time to spare
MARKER_S: Final = 35.0  # brokers wait 30 s for the replicas
_PER_REQUEST: Final = 1000  # partitions
_TRANSACTION: Final = 1  # a coordinator type
_BY_DURATION, _BY_PATTERN = 1, 2  # the first versions of ListTransactions with these filters
_ADMIN_MARKERS: Final = 1  # the version of WriteTxnMarkers without a transaction version, which stands for 0
_LAST_EPOCH: Final = 2**15 - 1
_MOVED: Final = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
}

logger = logging.getLogger(__name__)

Key = TypeVar("Key")
Answer = TypeVar("Answer")
Producers = tuple[PartitionProducer, ...]


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Summaries(list[TransactionSummary]):
    """Transactions, and a sentence for each broker whose transactions are missing."""

    missing: tuple[str, ...] = ()


class OpenTransactions(list[OpenTransaction]):
    """Transactions, and a sentence for each partition that could not be examined."""

    missing: tuple[str, ...] = ()


class TransactionAdmin:
    """Transactions, for any number of threads. A call waits for its answer, or raises a ClientError."""

    def __init__(self, brokers: Brokers, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._brokers = brokers
        self._now_ms = now_ms

    # -- coordinators ----------------------------------------------------------------------------

    def list_transactions(
        self,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        min_duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> Summaries:
        """Return the transactions that match every filter that is given, by transactional id.

        `min_duration_ms` leaves only open transactions, unless `states` names others. `pattern` is a regular
        expression for the whole transactional id, in RE2's syntax. Transactions whose coordinator does not
        answer are missing, and `missing` says which broker that is.
        """
        found = listed(self._brokers, list_request(states, producer_ids, min_duration_ms, pattern))
        if found.missing:
            logger.warning("transactions may be missing: %s", "; ".join(found.missing))
        return found

    def describe(self, transactional_ids: Iterable[str]) -> list[Transaction]:
        """Return these transactions; NoSuchTransactionalId if a coordinator does not know one of them."""
        wanted = _named(transactional_ids)
        found = self._describe(wanted).complete()
        for each in wanted:
            if found[each] is None:
                raise NoSuchTransactionalId(each)
        return [known for each in wanted if (known := found[each]) is not None]

    def describe_known(self, transactional_ids: Iterable[str]) -> dict[str, Transaction]:
        """Return those of these transactions that a coordinator describes, by transactional id.

        Left out are transactional ids that no coordinator knows, or whose coordinator does not answer.
        """
        found = self._describe(_named(transactional_ids), retries_s=PARTIAL_S)
        return {name: each for name, each in found.answers.items() if each is not None}

    def _describe(
        self, transactional_ids: Sequence[str], *, retries_s: float | None = None
    ) -> Answers[str, Transaction | None]:
        within_s = _within_s(len(transactional_ids))
        return ask_owners(
            transactional_ids,
            locate=lambda some: self._brokers.first(partial(_coordinators, some), within_s),
            ask=lambda asked: self._brokers.scatter(asked, partial(_described, self._now_ms()), within_s),
            backoff=Backoff(QUESTION_S + within_s, retries_s=retries_s),
        )

    # -- partitions ------------------------------------------------------------------------------

    def describe_producers(self, topic: str, partition: int) -> list[PartitionProducer]:
        """Return the producers whose state the leader of a partition keeps, by producer id."""
        topic_partition = _partition_of(topic, partition)
        found = self._producers([topic_partition], retries_s=QUESTION_S).complete()[topic_partition]
        if found is None:
            raise self._no_partition(topic_partition)
        return list(found)

    def active_producers(self, topic: str, partition: int) -> list[ActiveProducer]:
        """Return the producers of a partition, their transactional ids, and whose transaction is hanging."""
        topic_partition = _partition_of(topic, partition)
        producers = self.describe_producers(topic, partition)
        found = list(open_transactions({topic_partition: producers}, self._now_ms()))
        try:
            transactions = self.coordinated(found)
        except Unreachable:
            return active_producers(producers, found, None, ())
        hanging = unknown_to_coordinators(found, transactions)
        if hanging:
            # A transaction that has ended in the meantime is not open in the partition any more.
            producers = self.describe_producers(topic, partition)
            found = list(open_transactions({topic_partition: producers}, self._now_ms()))
            hanging = [each for each in hanging if each.key in {still_open.key for still_open in found}]
        return active_producers(producers, found, transactions, hanging)

    def open_transactions(self, topic: str, partition: int) -> list[OpenTransaction]:
        """Return the transactions that a partition has open, by offset."""
        producers = {_partition_of(topic, partition): self.describe_producers(topic, partition)}
        return list(open_transactions(producers, self._now_ms()))

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, PartitionEnd]:
        """Return the last stable offset and the high watermark of these partitions."""
        # The last stable offset first: the high watermark may rise in between, and stays the larger one.
        stable, high = (
            read_offsets(
                self._brokers,
                partitions,
                LATEST,
                Backoff(QUESTION_S, retries_s=PARTIAL_S),
                read_committed=read_committed,
            ).answers
            for read_committed in (True, False)
        )
        return {
            each: PartitionEnd(high_watermark=high.get(each), last_stable_offset=stable.get(each))
            for each in partitions
        }

    def abort(
        self, topic: str, partition: int, *, producer_id: int, producer_epoch: int, coordinator_epoch: int
    ) -> None:
        """Write an abort marker into one partition, which ends the producer's transaction there.

        The coordinator is not informed: this is for hanging transactions only.
        """
        topic_partition = _partition_of(topic, partition)
        marker = WritableTxnMarker(
            producer_id=_number("producer_id", producer_id, LAST_OFFSET),
            producer_epoch=_number("producer_epoch", producer_epoch, _LAST_EPOCH),
            transaction_result=False,
            topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[partition])],
            coordinator_epoch=_number("coordinator_epoch", coordinator_epoch, LAST_PARTITION),
        )
        retry(lambda: self._write(topic_partition, marker), Backoff(QUESTION_S), on=_NotWritten)

    def _write(self, partition: TopicPartition, marker: WritableTxnMarker) -> None:
        found = self._brokers.any_metadata([partition.topic])
        leader = leaders(found, [partition])[partition]
        if isinstance(leader, Known):
            raise self._no_partition(partition)
        if isinstance(leader, Unanswered):
            raise _NotWritten(f"{partition}: {leader.why}")
        request = WriteTxnMarkersRequest(markers=[marker])
        answers = self._brokers.each(
            {leader: lambda at: at.receive(at.send(request, _ADMIN_MARKERS))}, MARKER_S
        )
        answer = answers[leader]
        if isinstance(answer, NoAnswer):
            if not answer.sent:
                raise _NotWritten(f"{partition}: {answer}")
            raise Unreachable(f"{partition}: {answer}; the marker may have been written")
        _check_marker(answer.markers[0].topics[0].partitions[0].error_code, partition, marker)

    def find_hanging(
        self,
        topics: Collection[str] | None = None,
        *,
        broker_id: int | None = None,
        min_duration_ms: int | None = None,
    ) -> OpenTransactions:
        """Return the transactions that partitions have open and that no coordinator will end.

        Only partitions of `topics`, and only those that `broker_id` leads, if these are given. The duration
        is transaction.max.timeout.ms of the brokers and five minutes by default. Unreachable if not all
        coordinators answer: one of them may know the transaction.
        """
        partitions = self._partitions(topics, broker_id)
        limit_ms = self._longest_ms() if min_duration_ms is None else min_duration_ms
        found, missing = self._open(partitions)
        hanging = self.unknown(open_for(found, _number("min_duration_ms", limit_ms, LAST_OFFSET)))
        # A transaction that ended after its partition was read is not open in that partition any more.
        still_open = {each.key for each in self._open({each.topic_partition for each in hanging})[0]}
        result = OpenTransactions(each for each in hanging if each.key in still_open)
        result.missing = missing
        if missing:
            logger.warning("not all partitions were examined: %s", "; ".join(missing))
        return result

    def unknown(self, found: Sequence[OpenTransaction]) -> list[OpenTransaction]:
        """Return those of the open transactions that no coordinator will end."""
        return unknown_to_coordinators(found, self.coordinated(found))

    def coordinated(self, found: Sequence[OpenTransaction]) -> list[Transaction]:
        """Return what coordinators know of the producers of these open transactions.

        Unreachable if not all coordinators answer: one of them may know a producer.
        """
        if not found:
            return []
        of_producers = listed(self._brokers, list_request(producer_ids={each.producer_id for each in found}))
        if of_producers.missing:
            raise Unreachable(f"not all coordinators answer: {'; '.join(of_producers.missing)}")
        known = self._describe([each.transactional_id for each in of_producers]).complete()
        return [each for each in known.values() if each is not None]

    # -- requests --------------------------------------------------------------------------------

    def _open(self, partitions: Collection[TopicPartition]) -> tuple[list[OpenTransaction], tuple[str, ...]]:
        """Return the open transactions of these partitions, and why partitions are missing."""
        found = self._producers(partitions)
        producers = {partition: each for partition, each in found.answers.items() if each is not None}
        missing = (f"{partition}: {each.why}" for partition, each in sorted(found.missing.items()))
        return list(open_transactions(producers, self._now_ms())), tuple(missing)

    def _producers(
        self, partitions: Collection[TopicPartition], *, retries_s: float = PARTIAL_S
    ) -> Answers[TopicPartition, Producers | None]:
        """Return the producers of each partition; None of a partition that does not exist."""
        within_s = _within_s(len(partitions))

        def locate(
            some: list[TopicPartition],
        ) -> dict[TopicPartition, Node | Unanswered | Known[Producers | None]]:
            return leaders(self._brokers.any_metadata(by_topic(some), within_s), some)

        return ask_owners(
            partitions,
            locate=locate,
            ask=lambda asked: self._brokers.scatter(asked, _describe_producers, within_s),
            backoff=Backoff(QUESTION_S + within_s, retries_s=retries_s),
        )

    def _partitions(self, topics: Collection[str] | None, broker_id: int | None) -> list[TopicPartition]:
        for topic in topics or ():
            if why_no_topic(topic):
                raise NoSuchTopic(topic)
        found = self._brokers.any_metadata(topics)
        for each in found.topics if topics is not None else ():
            if each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise NoSuchTopic(each.name)
            raise_for(each.error_code, None, each.name)
        ids = sorted(node.id for node in nodes_of(found))
        if broker_id is not None and broker_id not in ids:
            raise ClientError(f"there is no broker {broker_id}, only {', '.join(map(str, ids))}")
        return [
            partition
            for partition, leader in sorted(leaders_of(found).items())
            if partition.topic != STATE_TOPIC and broker_id in {None, leader}
        ]

    def _longest_ms(self) -> int:
        """Return after which time every coordinator has aborted its transactions."""
        answers = self._brokers.scatter({node: [node] for node in self._brokers.nodes()}, _max_timeout_ms)
        for each in answers.values():
            if isinstance(each, Unanswered):
                raise Unreachable(f"{MAX_TIMEOUT} is not known: {each.why}")
        return max(each for each in answers.values() if not isinstance(each, Unanswered)) + GRACE_MS

    def _no_partition(self, partition: TopicPartition) -> ClientError:
        indexes = self._brokers.partitions([partition.topic]).get(partition.topic)
        if not indexes:
            return NoSuchTopic(partition.topic)
        return NoSuchPartition(partition.topic, partition.partition, max(indexes))


def listed(brokers: Brokers, request: ListTransactionsRequest) -> Summaries:
    """Return every transaction that a broker lists; Unreachable if no broker does."""
    # These filters leave few of many transactional ids: most have no open transaction.
    is_narrow = request.producer_id_filters or (
        request.state_filters and {*request.state_filters} <= {*OPEN_STATES}
    )
    lists = read_lists(brokers, STATE_TOPIC, partial(_list, request), QUICK_S if is_narrow else LIST_S)
    if lists.missing and not lists.by_node:
        raise Unreachable(f"no broker lists its transactions: {'; '.join(lists.missing)}")
    by_id = {
        each.transactional_id: TransactionSummary(
            transactional_id=each.transactional_id,
            state=each.transaction_state,
            producer_id=each.producer_id,
            coordinator=node.id,
        )
        for node, of_node in lists.by_node.items()
        for each in of_node
    }
    summaries = Summaries(each for _, each in sorted(by_id.items()))
    summaries.missing = lists.missing
    return summaries


class _NotWritten(Retriable):
    """No broker has received the marker, or the broker that has is not the leader."""


# -- one broker ------------------------------------------------------------------------------------


def _list(
    request: ListTransactionsRequest, node: Node, at: Connection
) -> list[ListedTransaction] | Unanswered:
    pattern, has_duration = request.transactional_id_pattern, request.duration_filter >= 0
    needed = _BY_PATTERN if pattern else _BY_DURATION if has_duration else 0
    if at.version(request) < needed:
        option = "pattern" if pattern else "min_duration_ms"
        raise ClientError(
            f"the broker at {at.address} cannot filter transactions by {option} (UNSUPPORTED_VERSION)"
        )
    answer = at.ask(request)
    if answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
        raise BadSetting(
            f"pattern {pattern!r:.80} is no regular expression of RE2 (INVALID_REGULAR_EXPRESSION)"
        )
    if answer.error_code != ErrorCode.NONE:
        return unanswered(answer.error_code, None, f"broker {node.id}", f"broker {node.id}")
    return list(answer.transaction_states)


def _coordinators(transactional_ids: list[str], at: Connection) -> dict[str, Node | Unanswered]:
    request = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=transactional_ids)
    return {
        each.key: (
            Node(each.node_id, each.host, each.port)
            if each.error_code == ErrorCode.NONE
            else unanswered(each.error_code, None, each.key, f"the broker at {at.address}")
        )
        for each in at.ask(request).coordinators
    }


def _described(
    now_ms: int, node: Node, transactional_ids: list[str], at: Connection
) -> dict[str, Transaction | Unanswered | None]:
    found: dict[str, Transaction | Unanswered | None] = {}
    answer = at.ask(DescribeTransactionsRequest(transactional_ids=transactional_ids))
    for each in answer.transaction_states:
        if each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            found[each.transactional_id] = None
        elif each.error_code != ErrorCode.NONE:
            found[each.transactional_id] = unanswered(
                each.error_code, None, each.transactional_id, f"broker {node.id}"
            )
        else:
            found[each.transactional_id] = transaction_of(each, node, now_ms)
    return found


def _describe_producers(
    node: Node, partitions: list[TopicPartition], at: Connection
) -> dict[TopicPartition, Producers | Unanswered | None]:
    found: dict[TopicPartition, Producers | Unanswered | None] = {}
    for first in range(0, len(partitions), _PER_REQUEST):
        some = by_topic(partitions[first : first + _PER_REQUEST])
        topics = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in some.items()]
        for topic in at.ask(DescribeProducersRequest(topics=topics)).topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.name, each.partition_index)
                if each.error_code == ErrorCode.NONE:
                    producers = sorted(each.active_producers, key=lambda each: each.producer_id)
                    found[partition] = tuple(map(producer_of, producers))
                else:
                    found[partition] = unanswered(each.error_code, None, str(partition), f"broker {node.id}")
    return found


def _max_timeout_ms(node: Node, _nodes: list[Node], at: Connection) -> dict[Node, int | Unanswered]:
    (found,) = at.ask(describe_configs_request(BROKER, [str(node.id)], [MAX_TIMEOUT])).results
    raise_for(found.error_code, found.error_message, f"broker {node.id}")
    (config,) = found.configs
    return {node: int(config.value)}


def _check_marker(code: int, partition: TopicPartition, marker: WritableTxnMarker) -> None:
    """Raise a ClientError with Kafka's name of the error, unless the marker is written."""
    if code == ErrorCode.NONE:
        return
    if code in _MOVED:
        raise _NotWritten(f"{partition}: {error_name(code)}")
    reasons = {
        ErrorCode.INVALID_PRODUCER_EPOCH: f"epoch {marker.producer_epoch} is fenced there",
        ErrorCode.TRANSACTION_COORDINATOR_FENCED: (
            f"coordinator epoch {marker.coordinator_epoch} is fenced there"
        ),
        ErrorCode.REQUEST_TIMED_OUT: "the marker is written, and not all in-sync replicas have it yet",
    }
    name = error_name(code)
    reason = reasons[ErrorCode(code)] if code in reasons else ADVICE.get(name, "the marker is refused")
    error = ClientError(f"{partition}: producer {marker.producer_id}: {reason} ({name})")
    error.error_code = ErrorCode(code) if code in set(ErrorCode) else None
    raise error


# -- arguments -------------------------------------------------------------------------------------


def list_request(
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    min_duration_ms: int | None = None,
    pattern: str | None = None,
) -> ListTransactionsRequest:
    """Ask for the transactions that match every filter; BadSetting if a filter is not valid."""
    if isinstance(states, str) or any(state not in STATES for state in states):
        raise BadSetting(f"states={states!r:.80}: it is a list of {', '.join(STATES)}")
    if pattern is not None and (not isinstance(pattern, str) or not pattern):
        raise BadSetting(f"pattern={pattern!r:.80}: it is a regular expression, such as 'billing-.*'")
    has_duration = min_duration_ms is not None
    return ListTransactionsRequest(
        state_filters=list(states) or (list(OPEN_STATES) if has_duration else []),
        producer_id_filters=[_number("producer_ids", each, LAST_OFFSET) for each in producer_ids],
        duration_filter=_number("min_duration_ms", min_duration_ms, LAST_OFFSET) if has_duration else -1,
        transactional_id_pattern=pattern,
    )


def _number(what: str, given: Any, last: int) -> int:
    number = whole(given)
    if number is None or not 0 <= number <= last:
        raise BadSetting(f"{what}={given!r:.80}: it is an int from 0 to {last}")
    return number


def _partition_of(topic: Any, partition: Any) -> TopicPartition:
    if why_no_topic(topic):
        raise NoSuchTopic(topic)
    return TopicPartition(topic, _number("partition", partition, LAST_PARTITION))


def _named(transactional_ids: Any) -> list[str]:
    ids = [transactional_ids] if isinstance(transactional_ids, str) else list(transactional_ids)
    for each in ids:
        if not isinstance(each, str) or not each or each.encode(errors="ignore").decode() != each:
            raise BadSetting(f"a transactional id is a str that is not empty, not {each!r:.80}")
    return list(dict.fromkeys(ids))


def _within_s(keys: int) -> float:
    return max(SILENT_S, QUICK_S + keys / KEYS_PER_S)
