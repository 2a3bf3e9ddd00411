"""What one request uses of its client's quotas, from its arrival to its response with the throttle time."""

import copy
from collections.abc import Awaitable, Generator, Mapping
from functools import cache, partial
from time import perf_counter
from typing import Any, Final, TypeVar

from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.results import Encoded, Reply
from headrace.protocol.api import response_class
from headrace.protocol.message import Message
from headrace.protocol.schema.index import ApiKey
from headrace.security.quota.entities import QuotaKey

T = TypeVar("T")
_FIELD: Final = "throttle_time_ms"
_BYTES: Final = 4
EXEMPT: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.WRITE_TXN_MARKERS})
"""Requests that are never throttled, like all that only brokers send."""
STRICT_SINCE: Final[Mapping[int, int]] = {
    ApiKey.CREATE_TOPICS: 6,
    ApiKey.DELETE_TOPICS: 5,
    ApiKey.CREATE_PARTITIONS: 3,
}
"""Since when what exceeds the controller_mutation_rate is refused, instead of throttled (KIP-599)."""
_RATES: Final[Mapping[int, QuotaKey]] = {
    ApiKey.PRODUCE: QuotaKey.PRODUCER_BYTE_RATE,
    ApiKey.FETCH: QuotaKey.CONSUMER_BYTE_RATE,
    **dict.fromkeys(STRICT_SINCE, QuotaKey.CONTROLLER_MUTATION_RATE),
}
"""The quota of an API; all of them are also charged their time."""


class RequestUsage:
    """The use of one request, which is charged to the client once, when the response is ready.

    Time counts while the request has the event loop, not while it waits.
    """

    __slots__ = (
        "_began",
        "_is_charged",
        "_key",
        "_quotas",
        "_seconds",
        "_size",
        "_throttled_by",
        "client_id",
        "user",
    )

    def __init__(self, quotas: ClientQuotas, user: str, client_id: str | None, key: int, size: int) -> None:
        self._quotas = quotas
        self.user = user
        self.client_id = client_id or ""
        self._key = key
        self._size = size
        self._is_charged = False
        self._throttled_by = _RATES.get(key, QuotaKey.REQUEST_PERCENTAGE)
        self._seconds = 0.0
        self._began: float | None = perf_counter()

    def muted_ms(self, version: int, used: set[QuotaKey]) -> int:
        """Return how long the request must wait if its connection is the first to use a quota of the client.

        `used` are the quotas that the connection has used; those of this request are added.
        """
        is_refused = version >= STRICT_SINCE.get(self._key, version + 1)  # which is an answer without delay
        keys = {QuotaKey.REQUEST_PERCENTAGE, *(() if is_refused else (self._throttled_by,))} - used
        used |= keys
        now_ms = _now_ms()
        return max((self._quotas.muted_ms(key, self.user, self.client_id, now_ms) for key in keys), default=0)

    def mute(self, throttle_ms: int) -> None:
        """Throttle other connections that the client opens meanwhile."""
        self._quotas.mute(self._throttled_by, self.user, self.client_id, throttle_ms, _now_ms())

    def exempt(self) -> None:
        """Charge nothing: the request comes from another broker."""
        self._is_charged = True

    def pause(self) -> None:
        """Stop counting time, because the request waits."""
        if self._began is not None:
            self._seconds += perf_counter() - self._began
            self._began = None

    def resume(self) -> None:
        self._began = perf_counter()

    @property
    def largest_fetch(self) -> int:
        """The bytes beyond which a Fetch response would always be throttled."""
        return self._quotas.largest_fetch(self.user, self.client_id)

    def charge_fetch(self, size: int) -> int:
        """Charge a Fetch with a response of `size` bytes; return the throttle time.

        If it is not 0, the response has to be empty, and its bytes are not charged.
        """
        self._is_charged = True
        now_ms = _now_ms()
        by_time = self._charge_time(now_ms)
        by_bytes = self._record(QuotaKey.CONSUMER_BYTE_RATE, size, now_ms)
        throttle_ms = self._larger(QuotaKey.CONSUMER_BYTE_RATE, by_bytes, by_time)
        if throttle_ms:
            self._record(QuotaKey.CONSUMER_BYTE_RATE, -size, now_ms)
        return throttle_ms

    def charge(self, *, answered: bool) -> int:
        """Charge the request, if that has not happened yet; return the throttle time.

        A Produce with acks=0, which is not answered, is charged its bytes and not its time, as in Kafka.
        """
        if self._is_charged:
            return 0
        self._is_charged = True
        now_ms = _now_ms()
        by_bytes = 0
        if self._key == ApiKey.PRODUCE:
            by_bytes = self._record(QuotaKey.PRODUCER_BYTE_RATE, self._size, now_ms)
        by_time = self._charge_time(now_ms) if answered else 0
        return self._larger(QuotaKey.PRODUCER_BYTE_RATE, by_bytes, by_time)

    def _larger(self, of_bytes: QuotaKey, by_bytes: int, by_time: int) -> int:
        """Return the larger throttle time, and count it for its quota."""
        throttle_ms = max(by_bytes, by_time)
        if throttle_ms:
            self._count(of_bytes if by_bytes > by_time else QuotaKey.REQUEST_PERCENTAGE, throttle_ms)
        return throttle_ms

    def mutate(self, partitions: int, *, strict: bool) -> int:
        """Charge the creation or deletion of partitions; return the throttle time."""
        throttle_ms = self._quotas.mutate(self.user, self.client_id, partitions, _now_ms(), strict=strict)
        if throttle_ms:
            self._count(QuotaKey.CONTROLLER_MUTATION_RATE, throttle_ms)
        return throttle_ms

    def _charge_time(self, now_ms: int) -> int:
        seconds = self._seconds
        if self._began is not None:
            seconds += perf_counter() - self._began
        return self._quotas.record_time(self.user, self.client_id, seconds, now_ms)

    def _record(self, key: QuotaKey, value: float, now_ms: int) -> int:
        return self._quotas.record(key, self.user, self.client_id, value, now_ms)

    def _count(self, key: QuotaKey, throttle_ms: int) -> None:
        self._throttled_by = key
        self._quotas.meters[key].count(throttle_ms)


def _now_ms() -> int:
    return int(perf_counter() * 1000)


class Timed(Awaitable[T]):
    """An awaitable whose steps count as time of a request."""

    def __init__(self, awaitable: Awaitable[T], usage: RequestUsage) -> None:
        self._awaitable = awaitable
        self._usage = usage

    def __await__(self) -> Generator[Any, Any, T]:
        """Run the awaitable; whatever is thrown in here is thrown into it."""
        steps: Any = self._awaitable.__await__()
        step = partial(steps.send, None)
        while True:
            self._usage.resume()
            try:
                waits_for = step()
            except StopIteration as stop:
                result: T = stop.value
                return result
            finally:
                self._usage.pause()
            step = partial(steps.send, None)
            try:
                yield waits_for
            except BaseException as error:  # noqa: BLE001  the awaitable decides what it means
                step = partial(steps.throw, error)


def with_throttle_time(reply: Reply, throttle_ms: int, key: int, version: int) -> tuple[Reply, int]:
    """Return a response with the larger of `throttle_ms` and its own throttle time, and that time.

    The controller, and the handler of Fetch, have set one already. A response is sent at once, and then the
    channel is muted (KIP-219).
    """
    if isinstance(reply, Message):
        own = int(getattr(reply, _FIELD, 0))
        if throttle_ms > own and hasattr(reply, _FIELD):
            reply = copy.copy(reply)  # others may share it
            setattr(reply, _FIELD, throttle_ms)
    elif isinstance(reply, Encoded) and reply.body and _is_first(key, version):
        first, *rest = reply.body
        own = int.from_bytes(first[:_BYTES], "big")
        if throttle_ms > own:
            reply = Encoded([throttle_ms.to_bytes(_BYTES, "big"), memoryview(first)[_BYTES:], *rest])
    else:
        own = 0
    return reply, max(own, throttle_ms)


@cache  # bounded: only for responses that were encoded
def _is_first(key: int, version: int) -> bool:
    """Return whether the throttle time is the first field of a response."""
    fields = (each for each in response_class(key).__fields__ if each.tag is None and each.exists_in(version))
    return next((field.name for field in fields), None) == _FIELD
