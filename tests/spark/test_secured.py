"""Spark on a cluster of `headrace up --secure`: all formats work, and no output has the password."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headrace import Admin, ConnectionSettings
from headrace.cli.pipeline.commands import open_pipeline
from headrace.cli.support.session import Session
from headrace.pipeline.checker import Checker
from headrace.pipeline.observers import Groups, History
from headrace.pipeline.plan import plan
from headrace.pipeline.progress import Progress
from headrace.pipeline.runner import Runner
from headrace.pipeline.topics import create, missing_topics
from headrace.spark.client_file import load_options
from headrace.spark.errors import SparkError
from spark.log_file import java_log
from spark.queries import BOTH, OURS, STREAM_TIMEOUT_S, THEIRS
from support.process import UpProcess
from wire.requests import fresh_name

pytestmark = pytest.mark.extended

PIPELINE: Final = """
from headrace.pipeline import Json, Pipeline, Topic

pipeline = Pipeline("secured"{client})
pipeline.source("orders", topic="{topic}", decode=Json("n int"), bad_rows="drop")


@pipeline.sink(Topic("{topic}.totals", key="n"), mode="complete")
def totals(orders):
    return orders.groupBy("n").count()


@pipeline.sink(Topic("{topic}.copy"))
def copy(orders):
    return orders.select("n")
"""


@dataclass(frozen=True)
class Secured:
    """The cluster, and everything that Spark has said about it."""

    up: UpProcess
    spark: SparkSession
    options: dict[str, str] = field(repr=False)
    log: Path

    @property
    def client_file(self) -> Path:
        return self.up.data / "client.properties"

    @property
    def secret(self) -> str:
        return self.options["kafka.sasl.jaas.config"].split('password="')[1].split('"')[0]

    @property
    def references(self) -> dict[str, str]:
        """The options with a reference to each value, which is in the client's file."""
        return {name: f"${{file:{self.client_file}:{name.removeprefix('kafka.')}}}" for name in self.options}

    def topic(self, values: int = 0) -> str:
        """A new topic with as many records: the numbers from 0 on, as JSON."""
        name = fresh_name("secured")
        with Admin(ConnectionSettings.load(self.client_file)) as admin:
            admin.create_topic(name, partitions=2, replicas=1)
        if values:
            self.write(OURS, self.numbers(values), name)
        return name

    def numbers(self, count: int) -> DataFrame:
        return self.spark.range(count).selectExpr("concat('{\"n\":', id, '}') AS value")

    def read(self, connector: str, topic: str, **more: str) -> DataFrame:
        options = self.options | {"subscribe": topic} | more
        return self.spark.read.format(connector).options(**options).load().selectExpr("CAST(value AS STRING)")

    def write(self, connector: str, frame: DataFrame, topic: str) -> None:
        frame.write.format(connector).options(**self.options, topic=topic).mode("append").save()

    def values(self, topic: str) -> list[str]:
        return sorted(row[0] for row in self.read(OURS, topic).collect())


@pytest.fixture(scope="module")
def secured(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    root = tmp_path_factory.mktemp("secured")
    with UpProcess(root, arguments=["--secure"]) as up, java_log(spark, root / "java.log") as log:
        yield Secured(up, spark, load_options(up.data / "client.properties"), log)


def check_no_secret(secret: str, *texts: str) -> None:
    for text in texts:
        assert text
        assert secret not in text


def check_no_secret_below(secret: str, directory: Path) -> None:
    files = [each for each in directory.rglob("*") if each.is_file()]
    assert files
    assert [each for each in files if secret.encode() in each.read_bytes()] == []


def plans(frame: DataFrame) -> list[str]:
    """Every text that `explain` can print."""
    made = frame._jdf.queryExecution()
    modes = ("simple", "extended", "codegen", "cost", "formatted")
    jvm: Any = frame.sparkSession._jvm
    explain = jvm.org.apache.spark.sql.execution.ExplainMode
    return [made.toString(), *(made.explainString(explain.fromString(each)) for each in modes)]


@pytest.mark.parametrize("connector", BOTH)
def test_batches(secured: Secured, connector: str) -> None:
    topic = secured.topic()
    secured.write(connector, secured.numbers(5), topic)
    frame = secured.read(connector, topic)

    assert sorted(row[0] for row in frame.collect()) == [f'{{"n":{n}}}' for n in range(5)]
    check_no_secret(secured.secret, *plans(frame), repr(frame))


def test_a_plan_has_references_and_not_the_password(secured: Secured) -> None:
    topic = secured.topic()
    secured.numbers(5).write.format(OURS).options(**secured.references, topic=topic).mode("append").save()
    frame = secured.spark.read.format(OURS).options(**secured.references, subscribe=topic).load()

    assert frame.count() == 5
    check_no_secret(secured.secret, *plans(frame), repr(frame))


@pytest.mark.parametrize(
    ("connector", "more"),
    [
        pytest.param(OURS, {}, marks=pytest.mark.long),
        (OURS, {"exactlyOnce": "true"}),
        pytest.param(THEIRS, {}, marks=pytest.mark.long),  # test_batches has it, too
    ],
    ids=str,
)
def test_streams(secured: Secured, connector: str, more: dict[str, str], tmp_path: Path) -> None:
    source, target = secured.topic(5), secured.topic()
    options = secured.options | more
    rows = (
        secured.spark.readStream.format(connector)
        .options(**secured.options, subscribe=source, startingOffsets="earliest")
        .load()
        .select("value")
    )
    query = (
        rows.writeStream.format(connector)
        .options(**options, topic=target, checkpointLocation=str(tmp_path / "checkpoint"))
        .queryName(fresh_name("query").replace("-", "_"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(STREAM_TIMEOUT_S)
    assert secured.values(target) == [f'{{"n":{n}}}' for n in range(5)]

    progress = [each.json for each in query.recentProgress]
    execution: Any = query._jsq
    check_no_secret(
        secured.secret, *progress, str(query.status), execution.explainInternal(True), *plans(rows)
    )
    check_no_secret_below(secured.secret, tmp_path)


def failures(secured: Secured, connector: str, checkpoint: Path) -> Iterator[BaseException]:
    """The exceptions of queries that cannot succeed."""
    topic = secured.topic(1)
    wrong = secured.options["kafka.sasl.jaas.config"].replace(secured.secret, f"{secured.secret}-wrong")
    with pytest.raises(Exception, match=r"(?s).") as batch:
        secured.read(connector, topic, **{"kafka.sasl.jaas.config": wrong}).collect()
    yield batch.value
    with pytest.raises((StreamingQueryException, PySparkException)) as streamed:
        stream_without_truststore(secured, connector, topic, checkpoint)
    yield streamed.value
    refused = secured.options | {"kafka.value.serializer": "org.example.Unknown"}
    with pytest.raises(Exception, match=r"(?s).") as written:
        secured.numbers(1).write.format(connector).options(**refused, topic=topic).mode("append").save()
    yield written.value


def stream_without_truststore(secured: Secured, connector: str, topic: str, checkpoint: Path) -> None:
    options = secured.options | {"kafka.ssl.truststore.location": str(checkpoint / "absent.pem")}
    rows = secured.spark.readStream.format(connector).options(**options, subscribe=topic).load()
    query = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()
    query.awaitTermination(STREAM_TIMEOUT_S)


@pytest.mark.parametrize("connector", [OURS, pytest.param(THEIRS, marks=pytest.mark.long)])
def test_failures_do_not_show_the_password(secured: Secured, connector: str, tmp_path: Path) -> None:
    for each in failures(secured, connector, tmp_path):
        trace = getattr(each, "getStackTrace", lambda: "none")() or "none"
        check_no_secret(secured.secret, str(each), repr(each), trace)


def from_the_administrators_file(_secured: Secured) -> str:
    return ""


def by_reference(secured: Secured) -> str:
    return f", client={ {name.removeprefix('kafka.'): value for name, value in secured.references.items()} }"


@pytest.mark.parametrize(
    "client", [from_the_administrators_file, pytest.param(by_reference, marks=pytest.mark.long)]
)
def test_a_pipeline(
    secured: Secured, client: Callable[[Secured], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = secured.topic(5)
    (tmp_path / "secured.py").write_text(PIPELINE.format(topic=topic, client=client(secured)))
    file = None if client is by_reference else secured.client_file
    opened = open_pipeline(Session(secured.up.bootstrap, command_config=file), Path("secured.py"), None)
    pipeline, bootstrap, state = opened.pipeline, opened.bootstrap, opened.state
    checked = list(Checker(secured.spark, pipeline, bootstrap, state).findings())
    assert [each for each in checked if not each.good] == []
    create(pipeline, bootstrap, missing_topics(pipeline, bootstrap))
    explained = plan(pipeline, bootstrap, state)
    told: list[Progress] = []
    with (
        closing(Groups(bootstrap, pipeline.client)) as groups,
        closing(History(bootstrap, pipeline.client)) as history,
        state.running(),
    ):
        Runner(secured.spark, pipeline, bootstrap, state, [told.append, groups, history]).run(to_the_end=True)

    assert secured.values(f"{topic}.copy") == [f'{{"n":{n}}}' for n in range(5)]
    assert len(secured.values(f"{topic}.totals")) == 5
    recorded = secured.values("_headrace_pipelines")
    check_no_secret(secured.secret, repr(opened), repr(checked), repr(explained), repr(told), *recorded)
    check_no_secret_below(secured.secret, tmp_path)


def test_the_logs_of_all_of_this_do_not_have_the_password(secured: Secured) -> None:
    text = secured.log.read_text(errors="replace")
    assert secured.up.bootstrap in text  # it has the settings of Java's clients, at level INFO
    check_no_secret(secured.secret, text)


def test_the_event_log_does_not_have_the_password(secured: Secured) -> None:
    directory = Path(urlsplit(secured.spark.conf.get("spark.eventLog.dir") or "").path)
    check_no_secret_below(secured.secret, directory)
    logs = [each for each in directory.rglob("*") if each.is_file()]
    assert any(b"SparkListenerSQLExecutionStart" in each.read_bytes() for each in logs)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match=r"absent\.properties cannot be read: no such file"):
        load_options(tmp_path / "absent.properties")
