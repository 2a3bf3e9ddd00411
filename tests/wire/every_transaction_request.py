"""A request that makes sense for every API of transactions, at every version."""

from collections.abc import Callable
from typing import Final

from headrace.protocol.message import Message
from headrace.protocol.schema.add_offsets_to_txn import AddOffsetsToTxnRequest
from headrace.protocol.schema.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from headrace.protocol.schema.describe_transactions import DescribeTransactionsRequest
from headrace.protocol.schema.end_txn import EndTxnRequest
from headrace.protocol.schema.index import ApiKey
from headrace.protocol.schema.list_transactions import ListTransactionsRequest
from headrace.protocol.schema.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from headrace.protocol.schema.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

TransactionRequest = Callable[[str, bytes, int], Message]
"""Makes the request for a topic, by its name or its id, in a version."""

_NOBODY: Final = 7  # a producer id that no broker has allocated


def _add_partitions(topic: str, _topic_id: bytes, version: int) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    if version < 4:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="nobody",
            v3_and_below_producer_id=_NOBODY,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id="nobody", producer_id=_NOBODY, producer_epoch=0, topics=topics
            )
        ]
    )


TRANSACTION_REQUESTS: Final[dict[ApiKey, TransactionRequest]] = {
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: lambda *_: AddOffsetsToTxnRequest(
        transactional_id="nobody", producer_id=_NOBODY, producer_epoch=0, group_id="group"
    ),
    ApiKey.END_TXN: lambda *_: EndTxnRequest(
        transactional_id="nobody", producer_id=_NOBODY, producer_epoch=0, committed=True
    ),
    ApiKey.WRITE_TXN_MARKERS: lambda topic, *_: WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=_NOBODY,
                producer_epoch=0,
                transaction_result=False,
                topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
                coordinator_epoch=0,
            )
        ]
    ),
    ApiKey.TXN_OFFSET_COMMIT: lambda topic, topic_id, _: TxnOffsetCommitRequest(
        transactional_id="nobody",
        group_id="group",
        producer_id=_NOBODY,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=topic,
                topic_id=topic_id,
                partitions=[
                    TxnOffsetCommitRequestPartition(
                        partition_index=0, committed_offset=1, committed_metadata=""
                    )
                ],
            )
        ],
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda *_: DescribeTransactionsRequest(transactional_ids=["nobody"]),
    ApiKey.LIST_TRANSACTIONS: lambda *_: ListTransactionsRequest(state_filters=[], producer_id_filters=[]),
}
