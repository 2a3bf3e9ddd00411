import pytest

from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.group_configs import check_group_values, consumer_timeouts
from headrace.broker.settings.setting import InvalidSetting
from headrace.coordinators.group.limits import ConsumerTimeouts

SESSION, HEARTBEAT = "consumer.session.timeout.ms", "consumer.heartbeat.interval.ms"


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({SESSION: "44999"}, "at least group.consumer.min.session.timeout.ms=45000"),
        ({SESSION: "60001"}, "at most group.consumer.max.session.timeout.ms=60000"),
        ({HEARTBEAT: "4999"}, "at least group.consumer.min.heartbeat.interval.ms=5000"),
        ({HEARTBEAT: "15001"}, "at most group.consumer.max.heartbeat.interval.ms=15000"),
        ({"streams.num.standby.replicas": "3"}, "at most group.streams.max.standby.replicas=2"),
        ({"share.delivery.count.limit": "11"}, "at most group.share.max.delivery.count.limit=10"),
        ({SESSION: "x"}, "a whole number"),
        ({"no.such": "1"}, "there is no setting"),
    ],
)
def test_a_group_keeps_to_the_bounds_of_the_broker(own: dict[str, str], expected: str) -> None:
    with pytest.raises(InvalidSetting, match=expected):
        check_group_values(own, BrokerConfig.of({}).values)


def test_a_session_is_longer_than_the_interval_of_heartbeats() -> None:
    broker = BrokerConfig.of({"group.consumer.min.session.timeout.ms": "1"}).values

    check_group_values({SESSION: "5001"}, broker)
    with pytest.raises(InvalidSetting, match=r"expected more than consumer\.heartbeat\.interval\.ms=5000"):
        check_group_values({SESSION: "5000"}, broker)


def test_what_a_group_has_set_stays_within_what_the_broker_allows_now() -> None:
    own = {SESSION: "50000", HEARTBEAT: "6000"}

    assert consumer_timeouts(own, BrokerConfig.of({}).values) == ConsumerTimeouts(50_000, 6_000)
    narrow = {
        "group.consumer.max.session.timeout.ms": "46000",
        "group.consumer.min.heartbeat.interval.ms": "7000",
    }
    assert consumer_timeouts(own, BrokerConfig.of(narrow).values) == ConsumerTimeouts(46_000, 7_000)
    assert consumer_timeouts({}, BrokerConfig.of({}).values) == ConsumerTimeouts(None, None)
