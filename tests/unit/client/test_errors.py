"""Sentences of others, as ours go on with them."""

import pytest
from confluent_kafka import KafkaError

from headrace.client.errors import ADVICE, ClientError, DeliveryFailed, NoSuchTopic, Unreachable, lowered
from headrace.client.librdkafka_errors import translate


@pytest.mark.parametrize(
    ("sentence", "behind_a_colon"),
    [
        ("Connection refused", "connection refused"),
        ("ZooKeeper is out of reach", "ZooKeeper is out of reach"),
        ("ISR is too small", "ISR is too small"),
        ("A record is too large", "a record is too large"),
        ("", ""),
    ],
)
def test_a_name_at_the_beginning_keeps_its_letters(sentence: str, behind_a_colon: str) -> None:
    assert lowered(sentence) == behind_a_colon


def failed(kinds: dict[str, int], *errors: ClientError) -> str:
    total = sum(kinds.values())
    return str(DeliveryFailed(failed=total, waiting=0, missing=0, sent=total, kinds=kinds, errors=errors))


def error_of(name: str) -> KafkaError:
    return KafkaError(getattr(KafkaError, name))


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("MSG_SIZE_TOO_LARGE", "raise max.message.bytes"),
        ("TOPIC_AUTHORIZATION_FAILED", "ask the administrator of the cluster"),
        ("_UNKNOWN_PARTITION", "give no partition, or an existing one"),
        ("INVALID_REQUIRED_ACKS", "acks is 'all', 1 or 0"),
        ("INVALID_RECORD", "the topic refuses the record"),
        ("NOT_ENOUGH_REPLICAS", "headrace cluster status"),
        ("_FENCED", "make another one"),
    ],
)
def test_what_would_fail_again_is_not_to_be_sent_again_as_it_is(kind: str, advice: str) -> None:
    one = translate(error_of(kind), "orders", "x:1")
    assert advice in str(one)
    said = failed({kind: 3}, one)
    assert said.count(advice) == 1
    assert not said.endswith(": send them again")


def test_what_passes_is_to_be_sent_again() -> None:
    one = translate(error_of("REQUEST_TIMED_OUT"), "orders", "x:1")
    assert failed({"REQUEST_TIMED_OUT": 1}, one).endswith("): send them again")
    assert failed({"_PURGE_QUEUE": 1, "_TRANSPORT": 1}).endswith("with more time; send them again")


@pytest.mark.parametrize("name", [name for name in ADVICE if name != "_FENCED"])
def test_advice_is_for_errors_that_there_are(name: str) -> None:
    assert error_of(name).name() == name


def test_a_broker_that_leaves_while_it_is_asked_is_out_of_reach() -> None:
    assert isinstance(translate(error_of("_DESTROY_BROKER"), "orders", "x:1"), Unreachable)


def test_a_record_that_was_not_acknowledged_may_want_for_replicas() -> None:
    late = translate(error_of("_MSG_TIMED_OUT"), "orders", "x:1", timeout_ms=30_000)
    assert isinstance(late, Unreachable)
    assert str(late).startswith(
        "orders: not acknowledged within 30,000 ms at x:1: fewer replicas are in sync"
    )
    assert "send them again (some may be written twice" in failed({"_MSG_TIMED_OUT": 1}, late)


@pytest.mark.parametrize("code", ["UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC"])
def test_only_a_topic_s_name_is_taken_for_one(code: str) -> None:
    error = error_of(code)
    assert str(translate(error, "orders", "x:1")) == "there is no topic orders"
    of_group = translate(error, "group d", "x:1", is_topic=False)
    assert isinstance(of_group, NoSuchTopic)
    assert str(of_group) == "group d: a topic or a partition does not exist (any more)"


@pytest.mark.parametrize("name", ["bad topic/!", "", ".", "..", "t" * 250, "ä"])
def test_a_name_that_no_topic_can_have_is_told_as_such(name: str) -> None:
    assert "1 to 249" in str(NoSuchTopic(name))
    assert "1 to 249" in str(translate(error_of("_UNKNOWN_TOPIC"), name, "x:1"))
    assert "1 to 249" in str(translate(error_of("TOPIC_EXCEPTION"), name, "x:1"))


def test_a_topic_is_named_by_a_str() -> None:
    assert str(NoSuchTopic(None)) == "there can be no topic None: a topic is named by a str, not by NoneType"
