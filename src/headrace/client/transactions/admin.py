"""Transactions of a cluster: what `headrace txn` does.

TransactionAdmin(Brokers("127.0.0.1:9092")).list_transactions(states=["Ongoing"])
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any, Final

from headrace.client import errors
from headrace.client.settings import LAST_OFFSET, LAST_PARTITION, whole
from headrace.client.transactions import transaction
from headrace.client.wire.brokers import PARTIAL_S, QUESTION_S, QUICK_S, SILENT_S, Brokers, read_lists
from headrace.client.wire.connection import Connection
from headrace.client.wire.offsets import leaders, read_offsets
from headrace.client.wire.requests import LATEST, Node
from headrace.client.wire.retry import Answers, Backoff, Known, Unanswered, ask_owners, unanswered
from headrace.protocol.errors import ErrorCode
from headrace.protocol.ids import TopicPartition, by_topic
from headrace.protocol.schema.describe_producers import DescribeProducersRequest, TopicRequest
from headrace.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schema.find_coordinator import FindCoordinatorRequest
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from headrace.protocol.schema.list_transactions import TransactionState as ListedTransaction

STATE_TOPIC: Final = "__transaction_state"  # the leaders of its partitions coordinate the transactions
LIST_S: Final = 10.0  # for a list that may be long: a broker takes seconds for 100,000 transactional ids
IDS_PER_S: Final = 1000  # transactional ids that a broker describes, with time to spare
_TRANSACTION: Final = 1  # a coordinator type
_BY_DURATION, _BY_PATTERN = 1, 2  # the first versions of ListTransactions with these filters

logger = logging.getLogger(__name__)

Producers = tuple[transaction.PartitionProducer, ...]


def wall_clock_ms() -> int:
    return time.time_ns() // 1_000_000


class Summaries(list[transaction.TransactionSummary]):
    """Transactions, and a sentence for each broker whose transactions are missing."""

    missing: tuple[str, ...] = ()


class TransactionAdmin:
    """Transactions, for any number of threads. A call waits for its answer, or raises a ClientError."""

    def __init__(self, brokers: Brokers, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self._brokers = brokers
        self._now_ms = now_ms

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        min_duration_ms: int | None = None,
        pattern: str | None = None,
    ) -> Summaries:
        """Return the transactions that match every filter that is given, by transactional id.

        `states` are such as Ongoing. `min_duration_ms` leaves only open transactions, unless `states`
        names others. `pattern` is a regular expression for the whole transactional id, in RE2's
        syntax. Transactions whose coordinator does not answer are missing, and `missing` says which broker
        that is.
        """
        request = _list_request(states, producer_ids, min_duration_ms, pattern)
        # These filters leave few of many transactional ids: most have no open transaction.
        is_narrow = producer_ids or (
            request.state_filters and {*request.state_filters} <= {*transaction.OPEN_STATES}
        )
        within_s = QUICK_S if is_narrow else LIST_S
        lists = read_lists(self._brokers, STATE_TOPIC, partial(_list, request), within_s)
        if lists.missing and not lists.by_node:
            raise errors.Unreachable(f"no broker lists its transactions: {'; '.join(lists.missing)}")
        by_id = {
            listed.transactional_id: transaction.TransactionSummary(
                transactional_id=listed.transactional_id,
                state=listed.transaction_state,
                producer_id=listed.producer_id,
                coordinator=node.id,
            )
            for node, of_node in lists.by_node.items()
            for listed in of_node
        }
        summaries = Summaries(summary for _, summary in sorted(by_id.items()))
        summaries.missing = lists.missing
        if lists.missing:
            logger.warning("transactions may be missing: %s", "; ".join(lists.missing))
        return summaries

    def describe_transactions(self, ids: Iterable[str]) -> list[transaction.Transaction]:
        """Return the transactions of these transactional ids; NoSuchTransactionalId if one is not known."""
        wanted = _named(ids)
        found = self._describe(wanted).complete()
        for each in wanted:
            if found[each] is None:
                raise errors.NoSuchTransactionalId(each)
        return [known for each in wanted if (known := found[each]) is not None]

    def describe_known(self, transactional_ids: Iterable[str]) -> dict[str, transaction.Transaction]:
        """Return those of these transactions that a coordinator describes, by transactional id.

        Left out are transactional ids that no coordinator knows, or whose coordinator does not answer.
        """
        found = self._describe(_named(transactional_ids), retries_s=PARTIAL_S)
        return {name: each for name, each in found.answers.items() if each is not None}

    def _describe(
        self, transactional_ids: Sequence[str], *, retries_s: float | None = None
    ) -> Answers[str, transaction.Transaction | None]:
        within_s = max(SILENT_S, QUICK_S + len(transactional_ids) / IDS_PER_S)
        return ask_owners(
            transactional_ids,
            locate=lambda some: self._brokers.first(partial(_coordinators, some), within_s),
            ask=lambda asked: self._brokers.scatter(asked, partial(_described, self._now_ms()), within_s),
            backoff=Backoff(QUESTION_S + within_s, retries_s=retries_s),
        )

    def describe_producers(self, topic: str, partition: int) -> list[transaction.PartitionProducer]:
        """Return the producers whose state the leader of a partition keeps, by producer id."""
        if errors.why_no_topic(topic):
            raise errors.NoSuchTopic(topic)
        wanted = TopicPartition(topic, _number("partition", partition, LAST_PARTITION))

        def locate(
            some: list[TopicPartition],
        ) -> dict[TopicPartition, Node | Unanswered | Known[Producers | None]]:
            return leaders(self._brokers.any_metadata(by_topic(some), QUICK_S), some)

        producers = ask_owners(
            [wanted],
            locate=locate,
            ask=lambda asked: self._brokers.scatter(asked, _describe_producers, QUICK_S),
            backoff=Backoff(QUESTION_S + QUICK_S, retries_s=QUESTION_S),
        ).complete()[wanted]
        if producers is not None:
            return list(producers)
        indexes = self._brokers.partitions([topic]).get(topic)
        raise errors.NoSuchPartition(topic, partition, max(indexes)) if indexes else errors.NoSuchTopic(topic)

    def ends(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, transaction.PartitionEnd]:
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
            each: transaction.PartitionEnd(high_watermark=high.get(each), last_stable_offset=stable.get(each))
            for each in partitions
        }


def _list(
    request: ListTransactionsRequest, node: Node, at: Connection
) -> list[ListedTransaction] | Unanswered:
    pattern, has_duration = request.transactional_id_pattern, request.duration_filter >= 0
    needed = _BY_PATTERN if pattern else _BY_DURATION if has_duration else 0
    if at.version(request) < needed:
        option = "pattern" if pattern else "min_duration_ms"
        raise errors.ClientError(
            f"the broker at {at.address} cannot filter transactions by {option} (UNSUPPORTED_VERSION)"
        )
    answer = at.ask(request)
    if answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION:
        raise errors.BadSetting(
            f"pattern {pattern!r:.80} is no regular expression of RE2 (INVALID_REGULAR_EXPRESSION)"
        )
    if answer.error_code != ErrorCode.NONE:
        return unanswered(answer.error_code, None, f"broker {node.id}", f"broker {node.id}")
    return list(answer.transaction_states)


def _coordinators(transactional_ids: list[str], at: Connection) -> dict[str, Node | Unanswered]:
    request = FindCoordinatorRequest(key_type=_TRANSACTION, coordinator_keys=transactional_ids)
    return {
        coordinator.key: (
            Node(coordinator.node_id, coordinator.host, coordinator.port)
            if coordinator.error_code == ErrorCode.NONE
            else unanswered(coordinator.error_code, None, coordinator.key, f"the broker at {at.address}")
        )
        for coordinator in at.ask(request).coordinators
    }


def _described(
    now_ms: int, node: Node, transactional_ids: list[str], at: Connection
) -> dict[str, transaction.Transaction | Unanswered | None]:
    found: dict[str, transaction.Transaction | Unanswered | None] = {}
    answer = at.ask(DescribeTransactionsRequest(transactional_ids=transactional_ids))
    for transaction_state in answer.transaction_states:
        if transaction_state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            found[transaction_state.transactional_id] = None
        elif transaction_state.error_code != ErrorCode.NONE:
            found[transaction_state.transactional_id] = unanswered(
                transaction_state.error_code, None, transaction_state.transactional_id, f"broker {node.id}"
            )
        else:
            found[transaction_state.transactional_id] = transaction.transaction_of(
                transaction_state, node, now_ms
            )
    return found


def _describe_producers(
    node: Node, partitions: list[TopicPartition], at: Connection
) -> dict[TopicPartition, Producers | Unanswered | None]:
    described: dict[TopicPartition, Producers | Unanswered | None] = {}
    asked = by_topic(partitions).items()
    topics = [TopicRequest(name=topic, partition_indexes=indexes) for topic, indexes in asked]
    for topic in at.ask(DescribeProducersRequest(topics=topics)).topics:
        for answer in topic.partitions:
            partition = TopicPartition(topic.name, answer.partition_index)
            if answer.error_code == ErrorCode.NONE:
                producers = sorted(answer.active_producers, key=lambda producer: producer.producer_id)
                described[partition] = tuple(map(transaction.producer_of, producers))
            else:
                described[partition] = unanswered(
                    answer.error_code, None, str(partition), f"broker {node.id}"
                )
    return described


def _list_request(
    states: Collection[str] = (),
    producer_ids: Collection[int] = (),
    min_duration_ms: int | None = None,
    pattern: str | None = None,
) -> ListTransactionsRequest:
    """Ask for the transactions that match every filter; BadSetting if a filter is not valid."""
    if isinstance(states, str) or any(state not in transaction.STATES for state in states):
        raise errors.BadSetting(f"states={states!r:.80}: it is a list of {', '.join(transaction.STATES)}")
    if pattern is not None and (not isinstance(pattern, str) or not pattern):
        raise errors.BadSetting(f"pattern={pattern!r:.80}: it is a regular expression, such as 'billing-.*'")
    has_duration = min_duration_ms is not None
    return ListTransactionsRequest(
        state_filters=list(states) or (list(transaction.OPEN_STATES) if has_duration else []),
        producer_id_filters=[_number("producer_ids", each, LAST_OFFSET) for each in producer_ids],
        duration_filter=_number("min_duration_ms", min_duration_ms, LAST_OFFSET) if has_duration else -1,
        transactional_id_pattern=pattern,
    )


def _number(what: str, given: Any, last: int) -> int:
    number = whole(given)
    if number is None or not 0 <= number <= last:
        raise errors.BadSetting(f"{what}={given!r:.80}: it is an int from 0 to {last}")
    return number


def _named(transactional_ids: Any) -> list[str]:
    ids = [transactional_ids] if isinstance(transactional_ids, str) else list(transactional_ids)
    for each in ids:
        if not isinstance(each, str) or not each or each.encode(errors="ignore").decode() != each:
            raise errors.BadSetting(f"a transactional id is a str that is not empty, not {each!r:.80}")
    return list(dict.fromkeys(ids))
