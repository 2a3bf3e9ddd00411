"""Which quota applies to a client: Kafka's order of precedence."""

from headrace.security.quota.entities import DEFAULT, QuotaEntity, QuotaKey
from headrace.security.quota.table import Applied, QuotaTable

KEY = QuotaKey.PRODUCER_BYTE_RATE
IN_ORDER = [
    (QuotaEntity("alice", "app"), ("alice", "app")),
    (QuotaEntity("alice", DEFAULT), ("alice", "app")),
    (QuotaEntity("alice"), ("alice", None)),
    (QuotaEntity(DEFAULT, "app"), ("alice", "app")),
    (QuotaEntity(DEFAULT, DEFAULT), ("alice", "app")),
    (QuotaEntity(DEFAULT), ("alice", None)),
    (QuotaEntity(None, "app"), (None, "app")),
    (QuotaEntity(None, DEFAULT), (None, "app")),
]


def test_the_most_specific_quota_applies_and_says_who_shares_it() -> None:
    table = QuotaTable()
    for limit, (entity, _) in enumerate(IN_ORDER, start=1):
        table.put(entity, {KEY: float(limit)})

    for limit, (entity, shared_by) in enumerate(IN_ORDER, start=1):
        assert table.applied(KEY, "alice", "app") == Applied(limit, *shared_by)
        table.put(entity, {})

    assert table.applied(KEY, "alice", "app") is None
    assert not table.has(KEY)
    assert table.entities == {}


def test_quotas_of_others_do_not_apply() -> None:
    table = QuotaTable()
    table.put(QuotaEntity("bob"), {KEY: 1.0})
    table.put(QuotaEntity("alice", "other"), {KEY: 1.0})
    table.put(QuotaEntity("alice"), {QuotaKey.CONSUMER_BYTE_RATE: 1.0})

    assert table.applied(KEY, "alice", "app") is None


def test_a_client_without_a_client_id_has_the_default_quota() -> None:
    table = QuotaTable()
    table.put(QuotaEntity(None, DEFAULT), {KEY: 5.0})

    assert table.applied(KEY, "alice", "") == Applied(5.0, None, "")


def test_an_address_has_its_own_rate_or_the_default_and_its_form_does_not_matter() -> None:
    table = QuotaTable()
    key = QuotaKey.CONNECTION_CREATION_RATE
    table.put(QuotaEntity(ip="2001:DB8::1"), {key: 3.0})

    assert table.connection_rate("2001:db8::1") == 3.0
    assert table.connection_rate("10.0.0.1") is None

    table.put(QuotaEntity(ip=DEFAULT), {key: 7.0})

    assert table.connection_rate("10.0.0.1") == 7.0
    assert QuotaEntity(ip="2001:DB8::1") in table.entities  # as it was written


def test_each_broker_of_a_node_enforces_its_share() -> None:
    table = QuotaTable()
    table.put(QuotaEntity("alice"), {KEY: 300.0, QuotaKey.CONTROLLER_MUTATION_RATE: 9.0})
    table.put(QuotaEntity(ip=DEFAULT), {QuotaKey.CONNECTION_CREATION_RATE: 6.0})

    table.brokers = 3

    assert table.applied(KEY, "alice", "app") == Applied(100.0, "alice", None)
    assert table.connection_rate("10.0.0.1") == 2.0
    mutations = table.applied(QuotaKey.CONTROLLER_MUTATION_RATE, "alice", "app")
    assert mutations == Applied(9.0, "alice", None), "only the controller enforces it, for the cluster"
    assert table.entities[QuotaEntity("alice")][KEY] == 300.0, "tools show the quota, not the share"

    table.brokers = 2
    assert table.applied(KEY, "alice", "app") == Applied(150.0, "alice", None)
