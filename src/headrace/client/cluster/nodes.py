"""The node of each broker: brokers with the same `headrace.node` share a machine."""

from functools import partial
from typing import Final

from headrace.client.wire.brokers import Brokers
from headrace.client.wire.connection import Connection, NoAnswer
from headrace.client.wire.requests import BROKER, Node, describe_configs_request
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse

NODE: Final = "headrace.node"
_SILENCE_S: Final = 5.0  # after which a broker counts as one without a node


def nodes_of(brokers: Brokers) -> dict[int, str | None]:
    """Return the node of each live broker; None if it has none, or does not answer."""
    live = [Node(each.node_id, each.host, each.port) for each in brokers.metadata().brokers]
    answers = brokers.each({node: partial(_ask_node, node) for node in live}, _SILENCE_S)
    return {
        node.id: None if isinstance(answer := answers[node], NoAnswer) else answer
        for node in sorted(live, key=lambda each: each.id)
    }


def _ask_node(node: Node, at: Connection) -> str | None:
    answer: DescribeConfigsResponse = at.ask(describe_configs_request(BROKER, [str(node.id)], [NODE]))
    values = [each.value for result in answer.results for each in result.configs]
    return next((value for value in values if value), None)
