"""What the brokers of a cluster have counted, asked of each of them."""

import logging
from collections.abc import Mapping, Sequence

from headrace.client.wire import Address, NoAnswer
from headrace.http.reach import Reach
from headrace.protocol.broker_metrics import BrokerMetricsRequest, BrokerMetricsResponse

logger = logging.getLogger(__name__)

Counted = Mapping[int, BrokerMetricsResponse]


def count(reach: Reach, prefixes: Sequence[str] = (), *, only: int | None = None) -> Counted:
    """The answers of the brokers that give one, by broker; Unreachable if the cluster does not answer."""
    request = BrokerMetricsRequest(prefixes=list(prefixes))
    answers: dict[int, BrokerMetricsResponse] = {}
    with reach.brokers() as brokers:
        for each in brokers.metadata().brokers:
            if only is not None and each.node_id != only:
                continue
            try:
                answers[each.node_id] = brokers.at(Address(each.host, each.port), request)
            except NoAnswer as error:
                logger.info("broker %d counts nothing: %s", each.node_id, error)
    return answers
