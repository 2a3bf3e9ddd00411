"""What topics want to know of their records' schemas: their settings, asked for now and then."""

import time
from collections import OrderedDict
from threading import Lock
from typing import Final

from starlette.concurrency import run_in_threadpool

from headrace.client.wire.requests import TOPIC, describe_configs_request
from headrace.http.reach import Reach
from headrace.protocol.schema.describe_configs import DescribeConfigsResponse
from headrace.registry.validation import KEY, KEY_STRATEGY, VALUE, VALUE_STRATEGY, Rule

FRESH_S: Final = 5.0
KEPT: Final = 10_000  # topics
_WANTED: Final = (KEY, KEY_STRATEGY, VALUE, VALUE_STRATEGY)


class TopicRules:
    """Rules that are at most `FRESH_S` old."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach
        self._lock = Lock()
        self._known: OrderedDict[str, tuple[Rule | None, float]] = OrderedDict()

    async def of(self, topic: str) -> Rule | None:
        """The topic's rule; None if it has none, or none that we know: then only brokers judge."""
        with self._lock:
            known = self._known.get(topic)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        return await run_in_threadpool(self._ask, topic)

    def _ask(self, topic: str) -> Rule | None:
        request = describe_configs_request(TOPIC, [topic], _WANTED)
        answer: DescribeConfigsResponse = self._reach.live.any(request)
        values = {each.name: each.value for found in answer.results for each in found.configs}
        try:
            rule = Rule.of(values)
        except ValueError:
            rule = None  # a strategy of somebody else's
        self._keep(topic, rule)
        return rule

    def _keep(self, topic: str, rule: Rule | None) -> None:
        with self._lock:
            self._known[topic] = rule, time.monotonic() + FRESH_S
            self._known.move_to_end(topic)
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
