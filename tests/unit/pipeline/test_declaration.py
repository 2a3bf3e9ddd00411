"""What may be declared, and the sentence for what may not."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace.pipeline import (
    Console,
    Delta,
    Iceberg,
    Json,
    Parquet,
    Pipeline,
    PipelineError,
    Raw,
    Registry,
    Text,
    Topic,
)


def declared() -> Pipeline:
    pipeline = Pipeline("trucks")
    pipeline.source("positions", topic="truck-positions", decode=Json("truck string"))
    return pipeline


def refusal(act: Callable[[], Any]) -> str:
    with pytest.raises(PipelineError) as error:
        act()
    return str(error.value)


def test_the_arguments_of_a_function_name_what_it_works_on() -> None:
    pipeline = declared()
    pipeline.source("drivers", topic="drivers")

    @pipeline.view
    def fast(positions: Any) -> Any:
        return positions

    @pipeline.sink(Topic("alerts"))
    def alerts(fast: Any, drivers: Any) -> Any:
        return fast, drivers

    pipeline.check()
    assert list(pipeline.needed(pipeline.sinks["alerts"])) == ["positions", "drivers"]


def test_topics_are_written_exactly_once_and_read_committed_unless_declined() -> None:
    pipeline = declared()
    pipeline.source("all", topic="t", options={"kafka.isolation.level": "read_uncommitted"})
    _, options = Topic("alerts").format("h:1")
    _, declined = Topic("alerts", options={"exactlyonce": "false"}).format("h:1")

    assert options == {"kafka.bootstrap.servers": "h:1", "topic": "alerts", "exactlyOnce": "true"}
    assert "exactlyOnce" not in declined
    assert pipeline.sources["positions"].reading("h:1")["isolation.level"] == "read_committed"
    assert "isolation.level" not in pipeline.sources["all"].reading("h:1")


def test_an_argument_that_names_nothing_is_refused_with_what_there_is() -> None:
    pipeline = declared()

    @pipeline.sink(Topic("alerts"))
    def alerts(position: Any) -> Any:
        return position

    assert (
        refusal(pipeline.check) == "alerts(position): there is no source or view 'position', only positions"
    )


def test_views_that_go_in_circles_are_refused() -> None:
    pipeline = declared()

    @pipeline.view
    def one(two: Any) -> Any:
        return two

    @pipeline.view
    def two(one: Any) -> Any:
        return one

    @pipeline.sink(Topic("alerts"))
    def alerts(one: Any) -> Any:
        return one

    assert refusal(pipeline.check) == "views depend on each other: alerts -> one -> two -> one"


def test_a_pipeline_without_a_sink_is_refused() -> None:
    assert "has no sink" in refusal(declared().check)


def test_a_sink_without_an_argument_is_refused() -> None:
    pipeline = declared()

    @pipeline.sink(Topic("alerts"))
    def alerts() -> Any:
        return None

    assert refusal(pipeline.check) == "alerts() has no argument: its arguments name the sources that it reads"


def test_a_name_is_declared_once() -> None:
    pipeline = declared()
    assert "declared twice" in refusal(lambda: pipeline.source("positions", topic="others"))


@pytest.mark.parametrize("name", ["", "two words", "a/b", "1st", "../up"])
def test_names_become_groups_and_directories_and_are_plain(name: str) -> None:
    assert "is not a valid name of a pipeline" in refusal(lambda: Pipeline(name))


@pytest.mark.parametrize(
    ("target", "refused"),
    [
        (Topic("t"), []),
        (Console(), []),
        (Delta("d"), ["update"]),
        (Iceberg("n.t", {}), ["update"]),
        (Parquet("p"), ["update", "complete"]),
    ],
)
def test_a_mode_that_a_target_cannot_take_is_refused_when_it_is_declared(
    target: Any, refused: list[str]
) -> None:
    pipeline = declared()
    found = []
    for mode in ("append", "update", "complete"):
        try:
            pipeline.sink(target, mode=mode)
        except PipelineError as error:
            found.append(mode)
            assert target.label in str(error)  # noqa: PT017  some are refused, some are not
    assert found == refused


def test_a_mode_that_nobody_knows_is_refused_with_those_there_are() -> None:
    assert "append, update, complete" in refusal(lambda: declared().sink(Topic("t"), mode="upsert"))


def test_bad_rows_are_one_of_three() -> None:
    said = refusal(lambda: declared().source("others", topic="o", bad_rows="ignore"))
    assert said == "source others: bad_rows is one of dead-letter, drop, fail"


def test_dead_letters_go_to_a_topic_named_for_the_first_that_is_read() -> None:
    source = Pipeline("p").source("s", topic="north, south", decode=Text())
    assert source.dead_letters == "north.dead-letters"


def test_bytes_as_they_are_have_no_dead_letters() -> None:
    pipeline = Pipeline("p")
    assert not pipeline.source("raw", topic="t", decode=Raw()).has_dead_letters
    assert not pipeline.source("dropped", topic="t", decode=Text(), bad_rows="drop").has_dead_letters
    assert pipeline.source("text", topic="t", decode=Text()).has_dead_letters


def test_a_source_reads_its_topic_from_the_start_unless_options_say_otherwise() -> None:
    pipeline = Pipeline("p")
    assert pipeline.source("a", topic="t").reading("h:1") == {
        "kafka.bootstrap.servers": "h:1",
        "includeHeaders": "true",
        "startingOffsets": "earliest",
        "subscribe": "t",
        "isolation.level": "read_committed",
    }
    pattern = pipeline.source(
        "b", topic="t", options={"subscribePattern": "t.*", "startingOffsets": "latest"}
    )
    assert "subscribe" not in pattern.reading("h:1")
    assert pattern.reading("h:1")["startingOffsets"] == "latest"


def test_a_replay_begins_at_its_time_and_where_there_is_nothing_since_at_the_end() -> None:
    reading = Pipeline("p").source("a", topic="t").reading("h:1", since_ms=17)
    assert reading["startingTimestamp"] == "17"
    assert reading["startingOffsetsByTimestampStrategy"] == "latest"


def test_a_registry_without_an_address_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_REGISTRY", raising=False)
    assert Registry().url == "http://127.0.0.1:8080"
    monkeypatch.setenv("HEADRACE_REGISTRY", "http://me:secret@one.example.com")
    assert Registry().url == "http://me:secret@one.example.com"
    assert Registry().address == "http://one.example.com"
    assert "secret" not in repr(Registry())


def test_keys_that_are_decoded_may_be_bad_too() -> None:
    pipeline = declared()
    assert not pipeline.source("bytes", topic="bytes").has_dead_letters
    assert pipeline.source("keyed", topic="keyed", key=Text()).has_dead_letters


def test_client_settings_that_come_after_the_sources_apply_to_them() -> None:
    pipeline = Pipeline("p")
    pipeline.source("a", topic="t", options={"kafka.client.id": "own"})
    pipeline.use_client({"sasl.password": "hunter2", "client.id": "all"})

    reading = pipeline.sources["a"].reading("h:1")
    assert (reading["kafka.sasl.password"], reading["kafka.client.id"]) == ("hunter2", "own")
    assert "hunter2" not in repr(pipeline)
