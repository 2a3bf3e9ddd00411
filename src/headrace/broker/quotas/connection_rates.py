"""How many connections per second may be created: on a broker, on a listener, and from an IP address."""

from typing import Final

from headrace.broker.quotas.client_quotas import ClientQuotas, window_of
from headrace.broker.settings.config import BrokerConfig
from headrace.security.listeners import Listener
from headrace.security.quota.entities import QuotaKey, normalized_ip
from headrace.security.quota.rate import SampledRate, Window
from headrace.security.quota.sensors import Sensors

_SETTING: Final = "max.connection.creation.rate"
_UNLIMITED: Final = 2**31 - 1
_NONE_AT_ALL: Final = 1e-9  # connections per second, instead of 0


class ConnectionRates:
    """The rates of new connections. Connections that are refused do not count."""

    def __init__(self, config: BrokerConfig, quotas: ClientQuotas) -> None:
        self._quotas = quotas
        self._window: Window = window_of(config, "quota")
        self._of_broker = SampledRate(self._window)
        self._of_listeners: dict[str, SampledRate] = {}
        self._of_addresses = Sensors(lambda: SampledRate(self._window))
        self.use_config(config)

    def use_config(self, config: BrokerConfig) -> None:
        """Apply changed rates to the next connections."""
        self._limit = config.number(_SETTING)
        self._limits = {}
        for listener in config.listeners:
            value = config.of_listener(listener.name, _SETTING)
            assert isinstance(value, int), value
            self._limits[listener.name] = value

    def delay_ms(self, listener: Listener, address: str, now_ms: int) -> int | None:
        """Record a new connection; return how long it has to wait, or None if it is refused.

        A connection waits until the rates of the broker and of its listener allow it, for one sample at
        most. Beyond the quota of its address it is refused at once.
        """
        limits: list[tuple[SampledRate, float]] = []
        # As in Kafka, the broker's limit does not apply to its inter-broker listener if there are others.
        is_protected = listener.is_inter_broker and len(self._limits) > 1
        if self._limit < _UNLIMITED and not is_protected:
            limits.append((self._of_broker, self._limit))
        of_listener = self._limits.get(listener.name, _UNLIMITED)
        if of_listener < _UNLIMITED:
            rate = self._of_listeners.setdefault(listener.name, SampledRate(self._window))
            limits.append((rate, of_listener))
        recorded, delay_ms = [], 0
        for rate, limit in limits:
            rate.record(1, now_ms)
            recorded.append(rate)
            delay_ms = max(delay_ms, rate.throttle_ms(limit or _NONE_AT_ALL, now_ms))
        of_address = self._quotas.table.connection_rate(normalized_ip(address) or address)
        is_refused = delay_ms > self._window.size_ms
        if of_address is not None and not is_refused:
            rate = self._of_addresses.use((None, address), now_ms)
            rate.record(1, now_ms)
            recorded.append(rate)
            throttle_ms = rate.throttle_ms(of_address, now_ms)
            is_refused = throttle_ms > 0
            if is_refused:
                self._quotas.meters[QuotaKey.CONNECTION_CREATION_RATE].count(throttle_ms)
        if is_refused:
            for rate in recorded:
                rate.record(-1, now_ms)
            return None
        return delay_ms
