"""The filters of DescribeClientQuotas."""

import pytest

from headrace.protocol.errors import ErrorCode, KafkaError
from headrace.security.quota.entities import DEFAULT, QuotaEntity
from headrace.security.quota.filters import Component, Match, QuotaFilter

ENTITIES = {
    "alice": QuotaEntity("alice"),
    "alice/app": QuotaEntity("alice", "app"),
    "alice/*": QuotaEntity("alice", DEFAULT),
    "*": QuotaEntity(DEFAULT),
    "*/app": QuotaEntity(DEFAULT, "app"),
    "/app": QuotaEntity(None, "app"),
    "ip": QuotaEntity(ip="10.0.0.1"),
}


def found(*components: Component, strict: bool = False) -> set[str]:
    asked = QuotaFilter.of(components, strict=strict)
    return {name for name, entity in ENTITIES.items() if asked.matches(entity)}


def test_an_empty_filter_matches_everything_unless_it_is_strict() -> None:
    assert found() == set(ENTITIES)
    assert found(strict=True) == set()


def test_an_exact_name_and_the_default() -> None:
    user = Component("user", Match.EXACT, "alice")

    assert found(user) == {"alice", "alice/app", "alice/*"}
    assert found(user, strict=True) == {"alice"}
    assert found(user, Component("client-id", Match.DEFAULT, None)) == {"alice/*"}
    assert found(Component("user", Match.DEFAULT, None)) == {"*", "*/app"}
    assert found(Component("user", Match.EXACT, "")) == set()


def test_any_name_includes_the_default() -> None:
    user, client = Component("user", Match.ANY, None), Component("client-id", Match.ANY, None)

    assert found(user, strict=True) == {"alice", "*"}
    assert found(user, client) == {"alice/app", "alice/*", "*/app"}
    assert found(Component("ip", Match.ANY, None)) == {"ip"}


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([Component("", Match.ANY, None)], ErrorCode.INVALID_REQUEST),
        ([Component("group", Match.ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
        ([Component("user", Match.ANY, None)] * 2, ErrorCode.INVALID_REQUEST),
        ([Component("user", Match.EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([Component("user", Match.DEFAULT, "alice")], ErrorCode.INVALID_REQUEST),
        ([Component("user", Match.ANY, "alice")], ErrorCode.INVALID_REQUEST),
        ([Component("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([Component("user", Match.ANY, None), Component("ip", Match.ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_invalid_filters_are_refused_with_kafkas_error_codes(
    components: list[Component], code: ErrorCode
) -> None:
    with pytest.raises(KafkaError) as refused:
        QuotaFilter.of(components, strict=False)

    assert refused.value.code == code
