"""Quotas of very many clients: their number is chosen by clients, and must not matter."""

from headrace.broker.quotas.client_quotas import ClientQuotas
from headrace.broker.settings.config import BrokerConfig
from headrace.coordination.znodes import clients_of
from headrace.security.quota.entities import QuotaKey
from headrace.security.quota.sensors import MOST_SENSORS

RATE = QuotaKey.PRODUCER_BYTE_RATE
USERS = 10_000
CLIENT_IDS = 7


def test_ten_thousand_users_with_quotas_and_their_client_ids_are_kept_apart_in_bounded_memory() -> None:
    quotas = ClientQuotas(BrokerConfig.of({}))
    quotas.change(clients_of(""), "", {RATE: "1000"})  # every client id of every user
    for user in range(0, USERS, 2):
        quotas.change("users", f"user{user}", {RATE: "1000"})  # shared by the user's client ids
    for client_id in range(CLIENT_IDS):
        for user in range(USERS):
            quotas.record(RATE, f"user{user}", f"app{client_id}", 1, now_ms=0)

    shared, own = USERS // 2, USERS // 2 * CLIENT_IDS
    assert quotas.sensors(RATE) == shared + own < MOST_SENSORS
    throttled = [
        quotas.record(RATE, user, "app0", 1_000_000, now_ms=0) > 0
        and quotas.record(RATE, user, "app1", 1, 0) > 0
        for user in ("user2", "user3")
    ]
    assert throttled == [True, False]  # user3's client ids have quotas of their own

    for client_id in range(CLIENT_IDS, 2 * CLIENT_IDS):
        for user in range(1, USERS, 2):
            quotas.record(RATE, f"user{user}", f"app{client_id}", 1, now_ms=0)
    assert quotas.sensors(RATE) == MOST_SENSORS


def test_clients_that_are_quiet_are_forgotten() -> None:
    quotas = ClientQuotas(BrokerConfig.of({}))
    quotas.change(clients_of(""), "", {RATE: "1000"})
    for user in range(USERS):
        quotas.record(RATE, f"user{user}", "app", 1, now_ms=0)
    for _ in range(USERS):
        quotas.record(RATE, "user0", "app", 1, now_ms=3_600_000)

    assert quotas.sensors(RATE) == 1


def test_a_client_is_throttled_until_its_time_is_over_or_its_quota_is_changed() -> None:
    quotas = ClientQuotas(BrokerConfig.of({}))
    quotas.change("users", "alice", {RATE: "1000"})
    quotas.mute(RATE, "alice", "app1", 500, now_ms=100)
    quotas.mute(RATE, "alice", "app2", 300, now_ms=100)  # the same quota, and a shorter time
    quotas.mute(RATE, "bob", "app", 500, now_ms=100)  # without a quota

    assert [quotas.muted_ms(RATE, "alice", "new", now_ms) for now_ms in (100, 599, 600)] == [500, 1, 0]
    assert quotas.muted_ms(RATE, "bob", "app", 100) == 0
    assert quotas.muted_ms(QuotaKey.CONSUMER_BYTE_RATE, "alice", "app1", 100) == 0

    quotas.change("users", "alice", {RATE: "1001"})
    assert quotas.muted_ms(RATE, "alice", "app1", 100) == 0
    quotas.mute(RATE, "alice", "app1", 100, now_ms=100)
    assert quotas.muted_ms(RATE, "alice", "app1", 100) == 100
