"""What members of a consumer group subscribe to: topics that come, grow and go, and regular expressions."""

from support.groups import CLIENT, GroupDesk, beat_request
from unit.coordinators.group.stories import consumers, desk, numbers, settle_consumers


def reads(at: GroupDesk, member_id: str, topic: str) -> set[int]:
    """What a member reads of a topic once everybody has settled."""
    settle_consumers(at, *consumers(at).members)
    return numbers(at, consumers(at).members[member_id].assigned, topic)


def test_a_topic_that_grows_is_noticed_by_the_next_heartbeat() -> None:
    at = desk()
    epoch = at.beat(beat_request("a", 0)).epoch

    answer = at.beat(beat_request("a", epoch))
    assert answer.assignment is None
    at.set_topics(orders=5)
    answer = at.beat(beat_request("a", epoch))

    assert (answer.epoch, numbers(at, answer.assignment)) == (epoch + 1, {0, 1, 2, 3, 4})


def test_a_topic_that_nobody_subscribes_to_changes_nothing() -> None:
    at = desk()
    epoch = at.beat(beat_request("a", 0)).epoch
    written = len(at.log)
    at.set_topics(orders=3, people=4)

    assert at.beat(beat_request("a", epoch)).epoch == epoch
    assert len(at.log) == written


def test_a_topic_may_come_after_its_subscribers() -> None:
    at = desk()
    answer = at.beat(beat_request("a", 0, topics=frozenset({"people"})))
    assert answer.assignment == {}

    at.set_topics(orders=3, people=2)

    assert reads(at, "a", "people") == {0, 1}


def test_a_topic_that_is_gone_is_taken_from_its_readers() -> None:
    at = desk()
    epoch = at.beat(beat_request("a", 0)).epoch
    at.set_topics()

    assert at.beat(beat_request("a", epoch)).assignment == {}
    answer = at.beat(beat_request("a", epoch, owned={}))

    assert (answer.epoch, consumers(at).state_name) == (epoch + 1, "Stable")


def test_a_topic_that_was_made_anew_is_another_topic() -> None:
    at = desk()
    at.beat(beat_request("a", 0))
    old_id = at.topic_id("orders")
    at.set_topics().set_topics(orders=1)

    assert at.topic_id("orders") != old_id
    assert reads(at, "a", "orders") == {0}
    assert consumers(at).members["a"].assigned.keys() == {at.topic_id("orders")}


def test_a_member_may_change_its_mind() -> None:
    at = desk().set_topics(orders=3, people=2)
    epoch = at.beat(beat_request("a", 0)).epoch

    told = at.beat(beat_request("a", epoch, topics=frozenset({"people"})))

    assert told.assignment == {}
    assert reads(at, "a", "people") == {0, 1}
    assert reads(at, "a", "orders") == set()


def test_what_nobody_subscribes_to_any_more_is_nobodys() -> None:
    at = desk().set_topics(orders=3, people=2)
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0, topics=frozenset({"people"})))
    at.beat(beat_request("b", -1))

    assert reads(at, "a", "people") == set()
    assert consumers(at).subscribed() == {"orders"}


# -- regular expressions ---------------------------------------------------------------------------


def test_an_expression_means_the_topics_whose_whole_name_it_matches() -> None:
    at = GroupDesk().set_topics(orders=1, orders2=1, my_orders=1)

    at.beat(beat_request("a", 0, topics=None, expression="orders.?"))

    assert consumers(at).resolved == {"orders.?": frozenset({"orders", "orders2"})}
    assert reads(at, "a", "orders2") == {0}
    assert reads(at, "a", "my_orders") == set()


def test_a_topic_that_matches_is_found_when_it_comes() -> None:
    at = desk()
    at.beat(beat_request("a", 0, topics=None, expression="p.*"))
    assert consumers(at).resolved == {"p.*": frozenset()}

    at.set_topics(orders=3, people=2, places=1)

    assert reads(at, "a", "people") == {0, 1}
    assert reads(at, "a", "places") == {0}


def test_an_expression_never_means_internal_topics() -> None:
    at = GroupDesk().set_topics(orders=1, __consumer_offsets=1)

    at.beat(beat_request("a", 0, topics=None, expression=".*"))

    assert consumers(at).resolved[".*"] == frozenset({"orders"})


def test_an_expression_means_topics_that_the_client_may_describe() -> None:
    at = GroupDesk().set_topics(orders=1, people=1, places=1)
    client = CLIENT._replace(may_describe=lambda name: name != "people")

    at.beat(beat_request("a", 0, topics=None, expression="p.*", client=client))

    assert consumers(at).resolved == {"p.*": frozenset({"places"})}


def test_names_and_an_expression_add_up() -> None:
    at = GroupDesk().set_topics(orders=1, people=1)

    at.beat(beat_request("a", 0, expression="p.*"))

    assert reads(at, "a", "orders") == reads(at, "a", "people") == {0}


def test_an_expression_that_nobody_uses_any_more_is_forgotten() -> None:
    at = GroupDesk().set_topics(orders=1, people=1)
    epoch = at.beat(beat_request("a", 0, topics=None, expression="p.*")).epoch

    at.beat(beat_request("a", epoch, topics=frozenset({"orders"}), expression=""))

    assert consumers(at).members["a"].expression is None
    assert consumers(at).resolved == {}
    assert reads(at, "a", "people") == set()
    assert reads(at, "a", "orders") == {0}


def test_an_expression_of_one_who_left_is_forgotten_with_the_next_target() -> None:
    at = GroupDesk().set_topics(orders=1, people=1)
    at.beat(beat_request("a", 0))
    at.beat(beat_request("b", 0, topics=None, expression="p.*"))
    at.beat(beat_request("b", -1))
    at.set_topics(orders=2, people=1)

    assert reads(at, "a", "orders") == {0, 1}
    assert consumers(at).resolved == {}


def test_what_an_expression_means_outlives_a_crash() -> None:
    at = GroupDesk().set_topics(orders=1, people=1)
    epoch = at.beat(beat_request("a", 0, topics=None, expression="p.*")).epoch
    at.crash()
    written = len(at.log)

    assert at.beat(beat_request("a", epoch)).epoch == epoch
    assert len(at.log) == written


# -- assignors -------------------------------------------------------------------------------------


def test_the_assignor_that_most_ask_for_is_used() -> None:
    at = GroupDesk().set_topics(orders=2, people=2)
    topics = frozenset({"orders", "people"})
    at.beat(beat_request("a", 0, topics=topics, assignor="range"))
    at.beat(beat_request("b", 0, topics=topics, assignor="range"))
    at.beat(beat_request("c", 0, topics=topics, assignor="uniform"))
    assert consumers(at).preferred_assignor() == "range"
    at.beat(beat_request("b", -1))

    assert consumers(at).preferred_assignor() is None  # one each


def test_the_first_assignor_serves_those_who_ask_for_none() -> None:
    at = GroupDesk(consumer_assignors=("range", "uniform")).set_topics(orders=2, people=2)
    for member_id in ("a", "b"):
        at.beat(beat_request(member_id, 0, topics=frozenset({"orders", "people"})))

    assert reads(at, "a", "orders") == reads(at, "a", "people") == {0}
    assert reads(at, "b", "orders") == reads(at, "b", "people") == {1}
