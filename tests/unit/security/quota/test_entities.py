"""Quota entities and values: what is accepted, and how it is written to ZooKeeper."""

import pytest

from headrace.security.quota.entities import (
    DEFAULT,
    InvalidQuota,
    QuotaEntity,
    QuotaKey,
    check_value,
    decode_values,
    encode_value,
    normalized_ip,
)

ALICE = QuotaEntity(user="alice")
ADDRESS = QuotaEntity(ip="10.0.0.1")


def test_an_entity_is_made_of_types_and_names_and_no_name_is_the_default() -> None:
    entity = QuotaEntity.of([("client-id", None), ("user", "alice")])

    assert entity == QuotaEntity(user="alice", client_id=DEFAULT)
    assert entity.parts == [("user", "alice"), ("client-id", None)]
    assert str(entity) == "user alice, client-id <default>"


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ([], "names neither"),
        ([("group", "g")], "'group' is unknown"),
        ([("user", "")], "is empty"),
        ([("user", "a"), ("user", "b")], "two names"),
        ([("ip", "10.0.0.1"), ("user", "a")], "cannot be combined"),
        ([("ip", "localhost")], "not an IP address"),
    ],
)
def test_other_entities_are_refused(parts: list[tuple[str, str | None]], problem: str) -> None:
    with pytest.raises(InvalidQuota, match=problem):
        QuotaEntity.of(parts)


@pytest.mark.parametrize(
    ("entity", "key", "value", "problem"),
    [
        (ALICE, "no_such_rate", 1.0, "is no quota of user entities"),
        (ALICE, "SCRAM-SHA-256", 1.0, "is no quota"),
        (ALICE, "connection_creation_rate", 1.0, "is no quota of user"),
        (ADDRESS, "producer_byte_rate", 1.0, "is no quota of ip"),
        (ALICE, "producer_byte_rate", 0.0, "greater than 0"),
        (ALICE, "request_percentage", -1.0, "greater than 0"),
        (ALICE, "request_percentage", float("nan"), "greater than 0"),
        (ALICE, "request_percentage", float("inf"), "finite"),
        (ALICE, "consumer_byte_rate", 1.5, "whole number"),
        (ALICE, "consumer_byte_rate", 1e19, "at most"),
        (ADDRESS, "connection_creation_rate", 2.0**31, "at most"),
    ],
)
def test_invalid_values_are_refused(entity: QuotaEntity, key: str, value: float, problem: str) -> None:
    with pytest.raises(InvalidQuota, match=problem):
        check_value(entity, key, value)


def test_whole_numbers_are_written_without_a_fraction() -> None:
    assert encode_value(QuotaKey.PRODUCER_BYTE_RATE, 1024.0) == "1024"
    assert encode_value(QuotaKey.REQUEST_PERCENTAGE, 50) == "50.0"


def test_what_is_no_quota_or_invalid_is_not_read() -> None:
    values = {
        "SCRAM-SHA-256": "salt=…",
        "producer_byte_rate": "1024",
        "consumer_byte_rate": "much",
        "request_percentage": "-5",
        "connection_creation_rate": "5",
    }

    assert decode_values(ALICE, values) == {QuotaKey.PRODUCER_BYTE_RATE: 1024.0}


def test_an_address_has_one_form() -> None:
    assert normalized_ip("2001:DB8:0::1") == "2001:db8::1"
    assert normalized_ip("::ffff:10.0.0.1") == "10.0.0.1"
    assert normalized_ip("host") is None
