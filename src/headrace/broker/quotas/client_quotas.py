"""The quotas of users and client ids on this broker: what each client has used, and how long it must wait."""

from collections.abc import Mapping
from typing import Final

from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.znodes import clients_of, user_of
from headrace.security.quota.entities import QuotaEntity, QuotaKey, decode_values
from headrace.security.quota.rate import SampledRate, TokenBucket, Window
from headrace.security.quota.sensors import Sensors
from headrace.security.quota.table import QuotaTable

USERS, CLIENTS, IPS = "users", "clients", "ips"
_MUTATIONS: Final = QuotaKey.CONTROLLER_MUTATION_RATE
_REQUESTS: Final = QuotaKey.REQUEST_PERCENTAGE
RATES: Final = (QuotaKey.PRODUCER_BYTE_RATE, QuotaKey.CONSUMER_BYTE_RATE, _REQUESTS)
KEYS_OF_CLIENTS: Final = (*RATES, _MUTATIONS)
_PERCENT: Final = 100.0
_UNLIMITED: Final = 2**63 - 1


class QuotaMeter:
    """How often clients were throttled by one quota, and for how long."""

    __slots__ = ("throttled", "throttled_ms")

    def __init__(self) -> None:
        self.throttled = self.throttled_ms = 0

    def count(self, throttle_ms: int) -> None:
        self.throttled += 1
        self.throttled_ms += throttle_ms


class _Mute:
    """Until when a client is throttled by one quota; void once the quota has another limit."""

    __slots__ = ("limit", "until_ms")

    def __init__(self) -> None:
        self.limit = 0.0
        self.until_ms = 0

    def is_idle(self, now_ms: int) -> bool:
        return now_ms >= self.until_ms


class ClientQuotas:
    """All quotas, and the sensors of the clients that have used theirs lately.

    A client that is throttled is throttled on its new connections, too: otherwise one that connects again
    after each request would have no quota at all. Connections that have used the quota before go on as in
    Kafka, and are muted when they use it again.
    """

    def __init__(self, config: BrokerConfig) -> None:
        self.table = QuotaTable()
        self.is_active = False
        """Whether any user or client id has a quota. Without one, a request costs no more than this test."""
        self.muted = 0  # connections that are not read until their throttle time is over
        self.meters = {key: QuotaMeter() for key in QuotaKey}
        self.window = window_of(config, "quota")
        self.mutation_window = window_of(config, "controller.quota")
        self._rates = {key: Sensors(lambda: SampledRate(self.window)) for key in RATES}
        self._buckets = Sensors(lambda: TokenBucket(self.mutation_window))
        self._mutes = {key: Sensors(_Mute) for key in KEYS_OF_CLIENTS}

    def sensors(self, key: QuotaKey) -> int:
        """Return the number of clients whose use of a quota is remembered."""
        return len(self._buckets if key is _MUTATIONS else self._rates[key])

    def change(self, kind: str, name: str, values: Mapping[str, str]) -> None:
        """Apply the configs of a user, a client id or an address, which have changed in ZooKeeper."""
        entity = entity_of(kind, name)
        self.table.put(entity, decode_values(entity, values))
        self.is_active = any(self.table.has(key) for key in KEYS_OF_CLIENTS)

    def record(self, key: QuotaKey, user: str, client_id: str, value: float, now_ms: int) -> int:
        """Record what a client has used, and return for how long it must be throttled, in ms."""
        applied = self.table.applied(key, user, client_id)
        if applied is None:
            return 0
        sensor = self._rates[key].use((applied.user, applied.client_id), now_ms)
        sensor.record(value, now_ms)
        return sensor.throttle_ms(applied.limit, now_ms)

    def record_time(self, user: str, client_id: str, seconds: float, now_ms: int) -> int:
        """Record the time of the event loop that a request took; a client never waits more than a sample."""
        throttle_ms = self.record(_REQUESTS, user, client_id, seconds * _PERCENT, now_ms)
        return min(throttle_ms, self.window.size_ms)

    def mute(self, key: QuotaKey, user: str, client_id: str, throttle_ms: int, now_ms: int) -> None:
        """Remember that a client is throttled, for its next connections."""
        applied = self.table.applied(key, user, client_id)
        if applied is not None:
            mute = self._mutes[key].use((applied.user, applied.client_id), now_ms)
            mute.until_ms = max(now_ms + throttle_ms, mute.until_ms if mute.limit == applied.limit else 0)
            mute.limit = applied.limit

    def muted_ms(self, key: QuotaKey, user: str, client_id: str, now_ms: int) -> int:
        """Return for how long a client is throttled that has not used this connection yet."""
        applied = self.table.applied(key, user, client_id)
        mute = None if applied is None else self._mutes[key].find((applied.user, applied.client_id))
        if applied is None or mute is None or mute.limit != applied.limit:
            return 0
        return max(0, mute.until_ms - now_ms)

    def largest_fetch(self, user: str, client_id: str) -> int:
        """Return the bytes beyond which a Fetch response would always be throttled."""
        applied = self.table.applied(QuotaKey.CONSUMER_BYTE_RATE, user, client_id)
        return _UNLIMITED if applied is None else int(applied.limit * self.window.full_s)

    def mutate(self, user: str, client_id: str, partitions: int, now_ms: int, *, strict: bool) -> int:
        """Record the creation or deletion of partitions; return the throttle time.

        A strict quota records nothing while the client must wait for earlier changes; another one
        records everything.
        """
        applied = self.table.applied(_MUTATIONS, user, client_id)
        if applied is None:
            return 0
        bucket = self._buckets.use((applied.user, applied.client_id), now_ms)
        throttle_ms = bucket.throttle_ms(applied.limit, now_ms) if strict else 0
        if throttle_ms:
            return throttle_ms
        bucket.record(partitions, applied.limit, now_ms)
        return 0 if strict else bucket.throttle_ms(applied.limit, now_ms)


def window_of(config: BrokerConfig, prefix: str) -> Window:
    return Window(
        config.integer(f"{prefix}.window.num"), 1000 * config.integer(f"{prefix}.window.size.seconds")
    )


def entity_of(kind: str, name: str) -> QuotaEntity:
    """Return the entity whose quotas are in the config of this kind and name."""
    match kind:
        case "users":
            return QuotaEntity(user=name)
        case "clients":
            return QuotaEntity(client_id=name)
        case "ips":
            return QuotaEntity(ip=name)
    user = user_of(kind)
    assert user is not None, kind
    return QuotaEntity(user=user, client_id=name)


def config_of(entity: QuotaEntity) -> tuple[str, str]:
    """Return the kind and the name of the config with the quotas of an entity."""
    if entity.ip is not None:
        return IPS, entity.ip
    if entity.user is None:
        assert entity.client_id is not None, entity
        return CLIENTS, entity.client_id
    if entity.client_id is None:
        return USERS, entity.user
    return clients_of(entity.user), entity.client_id


def has_quotas(kind: str) -> bool:
    """Return whether configs of this kind may contain quotas."""
    return kind in {USERS, CLIENTS, IPS} or user_of(kind) is not None
