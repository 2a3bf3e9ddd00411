from pathlib import Path

import pytest

from headrace.broker.settings.broker import BROKER_SETTINGS, COARSER
from headrace.broker.settings.config import BrokerConfig
from headrace.broker.settings.describe import Source, describe_broker, describe_topic
from headrace.broker.settings.setting import InvalidSetting, Kind, Setting, parse_properties, show
from headrace.broker.settings.topic import BROKER_SYNONYMS, TOPIC_SETTINGS, log_config, topic_values
from headrace.protocol.batch import TimestampType
from headrace.security.listeners import Endpoint, Listener, SecurityProtocol


def test_an_unknown_setting_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidSetting, match=r"no setting 'log\.dirss'; did you mean log\.dirs\?"):
        BrokerConfig.of({"log.dirss": "somewhere"})


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("broker.id", "one", "a whole number of at least 0"),
        ("broker.id", "-1", "a whole number of at least 0"),
        ("auto.create.topics.enable", "yes", "true or false"),
        ("log.cleanup.policy", "shred", "some of delete, compact"),
        ("log.message.timestamp.type", "Now", "one of CreateTime, LogAppendTime"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "a number from 0 to 1"),
        ("listeners", "9092", "NAME://HOST:PORT"),
        ("listeners", "PLAINTEXT://host:99999", "NAME://HOST:PORT"),
        ("num.partitions", "1_000", "a whole number"),
        ("num.partitions", "3000000000", "a whole number of at most 2147483647"),
        ("offsets.topic.replication.factor", "40000", "a whole number"),
        ("log.dirs", "/a,/b", "one directory"),
        ("process.roles", "controller", "expected the role broker"),
        ("authorizer.class.name", "org.example.Acls", "StandardAuthorizer"),
        ("super.users", "alice", "expected TYPE:NAME"),
        ("remote.log.storage.system.enable", "true", "tiered storage is not supported"),
        ("max.connections.per.ip.overrides", "localhost:3", "ADDRESS:COUNT"),
        ("max.connections.per.ip.overrides", "127.0.0.1", "ADDRESS:COUNT"),
        ("max.connections.per.ip.overrides", "127.0.0.1:-1", "ADDRESS:COUNT"),
        ("max.connections.per.ip.overrides", ",".join(["::1:5"] * 1_001), "at most 1000"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_what_would_do(name: str, text: str, expected: str) -> None:
    with pytest.raises(InvalidSetting) as refused:
        BrokerConfig.of({name: text})

    assert name in str(refused.value)
    assert expected in str(refused.value)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# mine\nbroker.id=1\nnum.partitions = 2\nlog.dirs=file\n", "utf-8")

    config = BrokerConfig.load(
        file=file,
        environment={"HEADRACE_NUM_PARTITIONS": "3", "HEADRACE_LOG_DIRS": "environment", "HOME": "ignored"},
        sets={"log.dirs": "line"},
    )

    assert config.broker_id == 1
    assert config.integer("num.partitions") == 3
    assert config.log_dir == Path("line")


def test_a_properties_file_may_have_comments_and_continued_lines() -> None:
    text = "! old\n# note\n\nlisteners=PLAINTEXT://a:1,\\\nPLAINTEXT://b:2\n  x = y=z  \n"

    assert parse_properties(text, "f") == {"listeners": "PLAINTEXT://a:1,PLAINTEXT://b:2", "x": "y=z"}


def test_a_line_without_an_equals_sign_is_refused_with_its_number() -> None:
    with pytest.raises(InvalidSetting, match=r"line 2: 'broker\.id' is not name=value"):
        parse_properties("a=b\nbroker.id\n", "server.properties")


def test_listeners_may_name_any_address_or_none() -> None:
    config = BrokerConfig.of({"listeners": "PLAINTEXT://:9092,PLAINTEXT://[::1]:9093"})

    assert config.listeners == (Endpoint("PLAINTEXT", "", 9092), Endpoint("PLAINTEXT", "::1", 9093))
    assert str(config.listeners[1]) == "PLAINTEXT://[::1]:9093"


def test_listeners_have_names_and_brokers_use_one_of_them() -> None:
    given = {
        "listeners": "EXTERNAL://:9092,INTERNAL://:9093",
        "listener.security.protocol.map": "EXTERNAL:PLAINTEXT,INTERNAL:PLAINTEXT",
    }

    assert BrokerConfig.of(given).inter_broker_listener == "EXTERNAL"
    config = BrokerConfig.of(given | {"inter.broker.listener.name": "INTERNAL"})
    assert config.listener("INTERNAL") == Listener(
        "INTERNAL", SecurityProtocol.PLAINTEXT, is_inter_broker=True
    )
    assert not config.listener("EXTERNAL").is_inter_broker


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"listeners": "EXTERNAL://:9092"}, "no security protocol for listener EXTERNAL"),
        ({"listeners": "SSL://:9092"}, "no listener with security.inter.broker.protocol=PLAINTEXT"),
        ({"listener.security.protocol.map": "A:TLS"}, "expected NAME:PROTOCOL"),
        ({"inter.broker.listener.name": "INTERNAL"}, "is not one of PLAINTEXT"),
    ],
)
def test_listeners_that_cannot_work_are_refused(given: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidSetting, match=why):
        BrokerConfig.of(given)


def test_every_topic_setting_falls_back_to_a_broker_setting_of_the_same_kind() -> None:
    alone = {
        "confluent.key.schema.validation",
        "confluent.key.subject.name.strategy",
        "confluent.value.schema.validation",
        "confluent.value.subject.name.strategy",
        "follower.replication.throttled.replicas",
        "headrace.append.expected.offset",
        "headrace.validate.records",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
    }
    assert TOPIC_SETTINGS.by_name.keys() - BROKER_SYNONYMS.keys() == alone
    for name, other in BROKER_SYNONYMS.items():
        setting, synonym = TOPIC_SETTINGS.find(name), BROKER_SETTINGS.find(other)
        default = None if other in COARSER else setting.default
        assert (synonym.kind, synonym.default) == (setting.kind, default), name


def test_every_default_is_one_that_its_own_setting_accepts() -> None:
    for setting in [*BROKER_SETTINGS.by_name.values(), *TOPIC_SETTINGS.by_name.values()]:
        text = show(setting.default)
        if text:
            assert setting.parse(text) == setting.default, setting.name


def test_a_topic_gets_its_own_value_then_the_brokers_then_the_default() -> None:
    config = BrokerConfig.of({"log.retention.ms": "5", "log.segment.bytes": "1000"})

    log = config.log_config({"retention.ms": "7", "message.timestamp.type": "LogAppendTime"})

    assert (log.retention_ms, log.segment_bytes, log.index_interval_bytes) == (7, 1000, 4096)
    assert log.message_timestamp_type is TimestampType.LOG_APPEND_TIME


def test_dynamic_settings_win_over_those_of_the_start() -> None:
    config = BrokerConfig.of({"log.retention.ms": "1"})

    changed = config.with_dynamic({"log.retention.ms": "2", "log.roll.ms": "9"}, {"log.retention.ms": "3"})

    assert (changed.integer("log.retention.ms"), changed.integer("log.roll.ms")) == (3, 9)
    assert config.integer("log.retention.ms") == 1


def test_without_a_cleanup_policy_everything_is_kept() -> None:
    assert not log_config(topic_values({"log.cleanup.policy": ()}, {}), producer_id_expiration_ms=1).delete

    config = log_config(topic_values({}, {"cleanup.policy": ""}), producer_id_expiration_ms=1)
    assert (config.delete, config.compact) == (False, False)


def test_settings_that_cannot_be_together_are_refused() -> None:
    lags = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    with pytest.raises(InvalidSetting, match=r"min\.compaction\.lag\.ms=10 is larger than"):
        BrokerConfig.of({}).check_topic(lags)

    with pytest.raises(InvalidSetting, match=r"min\.compaction\.lag\.ms=10 is larger than"):
        BrokerConfig.of({"log.cleaner.min.compaction.lag.ms": "10", "log.cleaner.max.compaction.lag.ms": "5"})


def test_names_that_kafka_has_two_of_mean_the_same() -> None:
    config = BrokerConfig.of({"node.id": "7", "log.dir": "/data"})
    assert (config.broker_id, config.log_dir) == (7, Path("/data"))
    assert BrokerConfig.of({"broker.id": "7"}).integer("node.id") == 7
    assert BrokerConfig.of({"log.dir": "/old", "log.dirs": "/new"}).log_dir == Path("/new")

    with pytest.raises(InvalidSetting, match=r"broker\.id=7 and node\.id=8 differ"):
        BrokerConfig.of({"broker.id": "7", "node.id": "8"})


def test_settings_without_effect_are_named_if_they_differ_from_kafkas_default() -> None:
    config = BrokerConfig.of({"num.io.threads": "9", "num.network.threads": "3", "num.partitions": "2"})

    assert config.without_effect == ["num.io.threads"]


def test_dynamic_settings_that_nobody_knows_are_kept_and_change_nothing() -> None:
    config = BrokerConfig.of({}).with_dynamic({"no.such": "1"}, {"listener.name.x.max.connections": "5"})

    assert config.integer("max.connections") == 10_000
    described = {each.name: each for each in describe_broker(config)}
    unknown = described["no.such"]
    assert (unknown.value, unknown.source, unknown.read_only) == (None, Source.DYNAMIC_DEFAULT_BROKER, True)
    assert (unknown.setting.kind, unknown.setting.is_sensitive) == (Kind.UNKNOWN, True)
    assert described["listener.name.x.max.connections"].value == "5"


def test_passwords_are_not_described() -> None:
    config = BrokerConfig.of({"ssl.keystore.password": "secret", "sasl.jaas.config": "secret"})

    assert [each for each in describe_broker(config) if "secret" in (each.value or "")] == []
    (password,) = [each for each in describe_broker(config) if each.name == "ssl.keystore.password"]
    assert [(place.value, place.source) for place in password.synonyms] == [(None, Source.STATIC_BROKER)]


def test_a_name_or_a_number_without_end_is_refused_without_much_work() -> None:
    with pytest.raises(InvalidSetting) as refused:
        BROKER_SETTINGS.find(1_000_000 * "x")
    assert len(str(refused.value)) < 200

    with pytest.raises(InvalidSetting):
        BROKER_SETTINGS.find("num.partitions").parse(1_000_000 * "9")


def test_connections_of_some_addresses_have_a_limit_of_their_own() -> None:
    config = BrokerConfig.of({"max.connections.per.ip.overrides": "127.0.0.1:5, [::1]:7,2001:DB8::1:9"})

    assert config.connections_by_address == {"127.0.0.1": 5, "::1": 7, "2001:db8::1": 9}


def test_a_list_is_split_and_trimmed() -> None:
    setting = Setting(name="x", kind=Kind.LIST, default=(), doc="")

    assert setting.parse(" a , b,, c ") == ("a", "b", "c")


STOCK_FILE = """
# The lines that count of config/server.properties, as Apache Kafka 3.9 comes with it
broker.id=0
#listeners=PLAINTEXT://:9092
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
#log.flush.interval.messages=10000
#log.flush.interval.ms=1000
log.retention.hours=168
#log.retention.bytes=1073741824
#log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def test_the_file_that_kafka_comes_with_will_do() -> None:
    config = BrokerConfig.of(parse_properties(STOCK_FILE, "server.properties"))

    assert config.text("zookeeper.connect") == "localhost:2181"
    assert config.log_config({}).retention_ms == 7 * 24 * 3_600_000


@pytest.mark.parametrize(
    ("given", "retention_ms"),
    [
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.hours": "-1"}, -1),
        ({}, 7 * 24 * 3_600_000),
    ],
)
def test_retention_in_ms_wins_over_minutes_and_those_over_hours(
    given: dict[str, str], retention_ms: int
) -> None:
    config = BrokerConfig.of(given)

    assert config.log_config({}).retention_ms == retention_ms
    assert config.log_config({"retention.ms": "9"}).retention_ms == 9
    assert config.with_dynamic({"log.retention.ms": "5"}, {}).log_config({}).retention_ms == 5
    (described,) = [each for each in describe_topic(config, {}) if each.name == "retention.ms"]
    assert described.value == str(retention_ms)
    assert described.source is (Source.STATIC_BROKER if "log.retention.ms" in given else Source.DEFAULT)


def test_the_age_of_a_segment_may_be_given_in_hours() -> None:
    assert BrokerConfig.of({"log.roll.hours": "1"}).log_config({}).segment_ms == 3_600_000
    assert BrokerConfig.of({"log.roll.hours": "1", "log.roll.ms": "8"}).log_config({}).segment_ms == 8
