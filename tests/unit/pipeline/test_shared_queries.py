"""Which sinks share a query, before a first run and when the pipeline has changed since the last one."""

from collections.abc import Callable, Collection
from typing import Any

import pytest

from headrace.pipeline import Console, Delta, Iceberg, Json, Parquet, Pipeline, Topic
from headrace.pipeline.shared_queries import Division, SharedQuery, divide, from_json, to_json
from headrace.pipeline.targets import Target

SHARED = "shop.orders.shared"


def shop(
    *sinks: str, target: Callable[[str], Target] = Topic, bad_rows: str = "drop", **more: Any
) -> Pipeline:
    """A pipeline from one source, with sinks of these names."""
    pipeline = Pipeline("shop")
    pipeline.source("orders", topic="orders", decode=Json("id string"), bad_rows=bad_rows)
    for name in sinks:
        add(pipeline, name, target=target, **more)
    return pipeline


def add(pipeline: Pipeline, name: str, *, target: Callable[[str], Target] = Topic, **more: Any) -> None:
    def function(orders: Any) -> Any:
        return orders

    function.__name__ = name
    pipeline.sink(target(name), **more)(function)


def divided(
    pipeline: Pipeline,
    *stored: SharedQuery,
    run: Collection[str] = (),
    left: Collection[str] = (),
    stateful: Collection[str] = (),
) -> Division:
    return divide(
        pipeline,
        stored,
        left,
        has_run=lambda name: name in run,
        is_stateless=lambda sink: sink.name not in stateful,
    )


def shared(*sinks: str, name: str = SHARED) -> SharedQuery:
    return SharedQuery(name=name, source="orders", sinks=sinks)


def test_sinks_of_one_source_and_interval_share_a_query_with_its_dead_letters() -> None:
    pipeline = shop("alerts", "copies", bad_rows="dead-letter")

    assert divided(pipeline) == Division(shared=(shared("alerts", "copies", "orders.dead-letters"),))


def test_dead_letters_share_the_query_of_a_sink_with_another_interval() -> None:
    pipeline = shop("alerts", bad_rows="dead-letter", every="1 minute")

    assert divided(pipeline).shared == (shared("alerts", "orders.dead-letters"),)


def test_sinks_with_different_intervals_do_not_share() -> None:
    pipeline = shop("alerts", "copies")
    add(pipeline, "seldom", every="1 minute")
    add(pipeline, "later", every="1 minute")

    assert divided(pipeline).shared == (
        shared("alerts", "copies"),
        shared("seldom", "later", name="shop.orders.shared-2"),
    )


def test_a_sink_alone_has_a_query_of_its_own() -> None:
    assert divided(shop("alerts")) == Division(own=("alerts",))


def test_a_sink_that_spark_keeps_state_for_has_a_query_of_its_own() -> None:
    pipeline = shop("alerts", "sums", "copies")

    assert divided(pipeline, stateful=["sums"]) == Division(
        shared=(shared("alerts", "copies"),), own=("sums",)
    )


@pytest.mark.parametrize("target", [Parquet, lambda _: Console()], ids=["Parquet", "Console"])
def test_a_target_that_does_not_recognise_a_repeated_batch_has_a_query_of_its_own(
    target: Callable[[str], Target],
) -> None:
    pipeline = shop("alerts", "copies")
    add(pipeline, "other", target=target, every="1 second")

    assert divided(pipeline).own == ("other",)


def test_topics_and_tables_share() -> None:
    pipeline = shop("alerts")
    add(pipeline, "delta", target=Delta, every="1 second")
    add(pipeline, "iceberg", target=lambda name: Iceberg(f"shop.{name}", {}), every="1 second")

    assert divided(pipeline).shared == (shared("alerts", "delta", "iceberg"),)


def test_a_sink_of_two_sources_does_not_share() -> None:
    pipeline = shop("alerts", "copies")
    pipeline.source("returns", topic="returns", decode=Json("id string"), bad_rows="drop")

    @pipeline.sink(Topic("both"))
    def both(orders: Any, returns: Any) -> Any:
        return orders.union(returns)

    assert divided(pipeline).own == ("both",)


def test_queries_of_an_earlier_version_continue_as_they_are() -> None:
    pipeline = shop("alerts", "copies", bad_rows="dead-letter")

    found = divided(pipeline, run=["shop.alerts", "shop.copies", "shop.orders.dead-letters"])

    assert found == Division(own=("alerts", "copies", "orders.dead-letters"))


def test_a_sink_that_is_added_later_begins_in_a_query_of_its_own() -> None:
    pipeline = shop("alerts", "copies", "late")

    found = divided(pipeline, shared("alerts", "copies"), run=[SHARED])
    assert found == Division(shared=(shared("alerts", "copies"),), own=("late",))

    again = divided(pipeline, *found.shared, run=[SHARED, "shop.late"])
    assert again == found


def test_two_sinks_that_are_added_later_share_a_query() -> None:
    found = divided(shop("alerts", "copies", "late", "later"), shared("alerts", "copies"), run=[SHARED])

    assert found.shared == (shared("alerts", "copies"), shared("late", "later", name="shop.orders.shared-2"))


def test_a_changed_interval_does_not_move_a_sink_to_another_query() -> None:
    pipeline = shop("alerts")
    add(pipeline, "copies", every="1 minute")

    assert divided(pipeline, shared("alerts", "copies"), run=[SHARED]).shared == (shared("alerts", "copies"),)


def test_a_stored_query_without_a_batch_is_divided_anew() -> None:
    assert divided(shop("alerts", "late"), shared("alerts", "copies")).shared == (shared("alerts", "late"),)


def test_a_sink_that_is_removed_leaves_its_query_and_continues_in_its_own_if_it_comes_back() -> None:
    gone = divided(shop("alerts"), shared("alerts", "copies"), run=[SHARED])
    assert gone == Division(shared=(shared("alerts"),), left={"copies": SHARED})

    back = divided(shop("alerts", "copies"), *gone.shared, run=[SHARED], left=["shop.copies"])
    assert back == Division(shared=(shared("alerts"),), own=("copies",))


def test_a_sink_that_spark_now_keeps_state_for_leaves_its_query() -> None:
    found = divided(shop("alerts", "sums"), shared("alerts", "sums"), run=[SHARED], stateful=["sums"])

    assert found == Division(shared=(shared("alerts"),), own=("sums",), left={"sums": SHARED})


def test_a_name_is_not_used_again_while_its_checkpoint_exists() -> None:
    found = divided(shop("late", "later"), shared("alerts", "copies"), run=[SHARED])

    assert found.shared == (shared(), shared("late", "later", name="shop.orders.shared-2"))
    assert found.left == {"alerts": SHARED, "copies": SHARED}


def test_shared_queries_come_back_from_json() -> None:
    queries = [shared("alerts", "copies"), shared(name="shop.orders.shared-2")]

    assert from_json(to_json(queries)) == queries
