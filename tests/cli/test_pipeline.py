"""`headrace pipeline` as far as it goes without Spark, and what people get wrong."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cli.command import Command
from headrace.pipeline.progress import TOPIC, Progress
from support.process import clean_environment

FILE = """
from headrace.pipeline import Delta, Json, Parquet, Pipeline, Topic

pipeline = Pipeline("{name}")
pipeline.source("orders", topic="{name}-orders", decode=Json("id string, price double"))


@pipeline.view
def large(orders):
    return orders.where("price > 100")


@pipeline.sink(Topic("{name}-large", key="id"))
def alerts(large):
    return large


@pipeline.sink(Parquet("files"), every="7 seconds")
def archive(orders):
    return orders
"""


@pytest.fixture
def pipeline(headrace: Command, tmp_path: Path) -> Path:
    """A file that declares a pipeline of the directory's name; the topic that it reads has three records."""
    name = tmp_path.name.replace("_", "-")
    path = tmp_path / f"{name}.py"
    path.write_text(FILE.format(name=name))
    headrace.ok("topic", "create", f"{name}-orders", "--partitions", "2")
    headrace.ok("produce", f"{name}-orders", "a", "b", "--partition", "0")
    headrace.ok("produce", f"{name}-orders", "c", "--partition", "1")
    return path


def has_run(path: Path, query: str, offsets: dict[str, int]) -> Path:
    """Leave what Spark leaves of a query's first batch."""
    checkpoint = path.parent / ".headrace" / path.stem / "checkpoints" / f"{path.stem}.{query}"
    for directory in ("offsets", "commits"):
        (checkpoint / directory).mkdir(parents=True)
    said = json.dumps({f"{path.stem}-orders": offsets})
    (checkpoint / "offsets" / "0").write_text(f"v1\n{{}}\n{said}")
    (checkpoint / "commits" / "0").write_text("v1\n{}")
    return checkpoint


def tell(headrace: Command, progress: list[Progress]) -> None:
    """Write progress as a pipeline that runs would."""
    headrace("topic", "create", TOPIC)
    headrace.ok("produce", TOPIC, *(each.encode().decode() for each in progress))


@pytest.mark.parametrize("arguments", [["--help"], ["pipeline", "--help"], ["pipeline", "run", "--help"]])
def test_help_does_without_spark(arguments: list[str]) -> None:
    program = (
        "import sys; from headrace.cli.main import commands; "
        f"commands.main({arguments!r}, standalone_mode=False); "
        "assert not [each for each in sys.modules if each.startswith(('pyspark.', 'pyarrow', 'numba'))]"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=40,
    )
    assert done.returncode == 0, done.stderr
    assert "Usage: " in done.stdout


def test_init_makes_a_pipeline_that_can_be_explained_and_leaves_files_alone(
    headrace: Command, tmp_path: Path
) -> None:
    here = ("--directory", str(tmp_path))
    made = tmp_path / "shop-one.py"
    assert headrace.ok("pipeline", "init", "shop-one", *here).text.startswith(f"created {made}, ")
    text = made.read_text()
    assert headrace("pipeline", "init", "shop-one", *here).complaint.startswith(f"{made} exists already")
    assert made.read_text() == text

    headrace.ok("topic", "create", "shop-one-orders", "--partitions", "3")
    plan = headrace.ok("pipeline", "explain", str(made), "--json").json
    assert [each["name"] for each in plan["queries"]] == [
        "shop-one.alerts",
        "shop-one.archive",
        "shop-one.orders.dead-letters",
    ]
    assert {each["shared"] for each in plan["queries"]} == {"shop-one.orders.shared"}
    assert plan["new_topics"] == [
        {"name": "shop-one-large-orders", "partitions": 3, "replicas": 1},
        {"name": "shop-one-orders.dead-letters", "partitions": 3, "replicas": 1},
    ]
    assert [each["creates"] for each in plan["queries"]] == [None, "Delta table shop-one-table", None]


def test_init_makes_a_project_for_triggered_runs(headrace: Command, tmp_path: Path) -> None:
    home = tmp_path / "für 100%20"  # Hadoop takes a URL as it is: nothing in it may be escaped
    here = ("--triggered", "--directory", str(home))
    made = headrace.ok("pipeline", "init", "Sales-2", *here, "--json").json
    root = home / "Sales-2"
    assert made["files"] == [str(root / "spark-pipeline.yml"), str(root / "transformations" / "sales_2.py")]
    specification = (root / "spark-pipeline.yml").read_text()
    assert f'storage: "file://{root}/.headrace/Sales-2/storage"' in specification
    compile((root / "transformations" / "sales_2.py").read_text(), "sales_2.py", "exec")
    again = headrace("pipeline", "init", "Sales-2", *here)
    assert "exists already" in again.complaint
    assert "it can be checked, run and stopped" in headrace("pipeline", "explain", str(root)).complaint
    assert "pipeline Sales-2 is not running" in headrace("pipeline", "stop", str(root)).complaint


def test_a_project_runs_locally_or_by_connect(headrace: Command, tmp_path: Path) -> None:
    headrace.ok("pipeline", "init", "far", "--triggered", "--directory", str(tmp_path))
    project = str(tmp_path / "far")
    refused = headrace("pipeline", "run", project, "--master", "spark://h:7077").complaint
    assert refused == "a project runs locally or with Spark Connect (sc://HOST), not on spark://h:7077"
    refused = headrace("pipeline", "check", project, "--state", "s3a://bucket/state").complaint
    assert "the state of a project has to be in a local directory, not s3a://bucket/state" in refused
    assert not (tmp_path / "far" / ".headrace").exists()


@pytest.mark.parametrize("verb", ["run", "explain", "status"])
def test_state_on_other_storage_is_refused(headrace: Command, pipeline: Path, verb: str) -> None:
    said = headrace("pipeline", verb, str(pipeline), "--state", "ftp://host/state").complaint

    assert "'--state': the state of a pipeline cannot be stored at ftp://host/state: it has to be" in said
    assert not Path("ftp:").exists()
    assert not (pipeline.parent / "ftp:").exists()


def test_state_may_be_given_as_a_url_of_a_file(headrace: Command, pipeline: Path, tmp_path: Path) -> None:
    for url in (f"file://{tmp_path}/state", f"file:{tmp_path}/state"):
        plan = headrace.ok("pipeline", "explain", str(pipeline), "--state", url, "--json").json
        assert plan["state"] == f"{tmp_path}/state/{pipeline.stem}"


def test_a_pipeline_is_not_made_on_other_storage(headrace: Command) -> None:
    said = headrace("pipeline", "init", "shop", "--directory", "s3a://bucket/shop").complaint

    assert said.startswith("a pipeline cannot be stored at s3a://bucket/shop: ")
    assert not Path("s3a:").exists()


def test_a_name_that_is_none_is_refused(headrace: Command, tmp_path: Path) -> None:
    said = headrace("pipeline", "init", "two words", "--directory", str(tmp_path)).complaint
    assert said.startswith("'two words' is not a valid name of a pipeline")
    assert list(tmp_path.iterdir()) == []


def test_explain_tells_sources_steps_sinks_and_what_is_new(headrace: Command, pipeline: Path) -> None:
    name = pipeline.stem
    lines = headrace.ok("pipeline", "explain", str(pipeline)).text.splitlines()
    assert f"source orders: topic {name}-orders, 2 partitions, 3 records" in lines
    assert (
        f"  decoded as JSON (id string, price double); bad rows go to topic {name}-orders.dead-letters"
        in lines
    )
    assert "view large, from orders" in lines
    assert f"query {name}.archive: orders -> Parquet files in files" in lines
    assert "  mode append, every 7 seconds" in lines
    assert lines.count("  starts anew: 3 records to read") == 3
    assert lines[-4:] == [
        "will be created:",
        f"  topic {name}-large: 2 partitions, 1 replica",
        f"  topic {name}-orders.dead-letters: 2 partitions, 1 replica",
        "  Parquet files in files",
    ]


def test_explain_tells_the_lag_since_the_checkpoint(headrace: Command, pipeline: Path) -> None:
    checkpoint = has_run(pipeline, "alerts", {"0": 1, "1": 1})
    lines = headrace.ok("pipeline", "explain", str(pipeline)).text.splitlines()
    assert "  continues after batch 0: lag 1 record" in lines
    assert f"  checkpoint {checkpoint}" in lines


def test_explain_tells_expectations(headrace: Command, pipeline: Path) -> None:
    name = pipeline.stem
    added = """
pipeline.expect_or_drop("large", "an id", "id is not null")
pipeline.expect_or_quarantine("orders", "a price", "price > 0", to=Topic("{name}-bad"))
"""
    pipeline.write_text(pipeline.read_text() + added.format(name=name))
    lines = headrace.ok("pipeline", "explain", str(pipeline)).text.splitlines()
    assert "expectation on large, an id: id is not null; other rows are dropped" in lines
    assert f"expectation on orders, a price: price > 0; other rows go to topic {name}-bad" in lines
    assert f"query {name}.orders.quarantine: orders -> topic {name}-bad" in lines
    assert f"  topic {name}-bad: 2 partitions, 1 replica" in lines


def test_explain_tells_which_sinks_share_a_query(headrace: Command, pipeline: Path) -> None:
    name = pipeline.stem
    shared = f"{name}.orders.shared"
    before = headrace.ok("pipeline", "explain", str(pipeline)).text.splitlines()
    assert f"  shares query {shared} with orders.dead-letters, unless Spark keeps state for it" in before

    checkpoint = has_run(pipeline, "orders.shared", {"0": 2, "1": 0})
    stored = {"queries": {shared: {"source": "orders", "sinks": ["alerts", "orders.dead-letters"]}}}
    (checkpoint.parent.parent / "shared-queries.json").write_text(json.dumps(stored))
    plan = headrace.ok("pipeline", "explain", str(pipeline), "--json").json
    assert [(each["name"], each["shared"], each["lag"]) for each in plan["queries"]] == [
        (f"{name}.alerts", shared, 1),
        (f"{name}.archive", None, 3),
        (f"{name}.orders.dead-letters", shared, 1),
    ]


def test_graph_draws_steps_with_the_rates_of_the_last_batch(headrace: Command, pipeline: Path) -> None:
    name = pipeline.stem
    tell(
        headrace,
        [
            Progress(pipeline=name, query=f"{name}.alerts", event="started", at_ms=1),
            Progress(
                pipeline=name,
                query=f"{name}.alerts",
                event="batch",
                at_ms=2,
                rows=3,
                rows_per_s=30,
                written=1,
                written_per_s=10,
                lag=7,
            ),
        ],
    )
    assert headrace.ok("pipeline", "graph", str(pipeline)).text.splitlines() == [
        f"pipeline {name}",
        f"  source orders: topic {name}-orders; 30 rows/s in",
        "    view large",
        f"      sink alerts -> topic {name}-large; running, 10 rows/s out, lag 7",
        "    sink archive -> Parquet files in files",
        f"    sink orders.dead-letters -> topic {name}-orders.dead-letters",
    ]
    flowchart = headrace.ok("pipeline", "graph", str(pipeline), "--mermaid").text
    assert flowchart.startswith("flowchart LR\n")
    assert f'n2["sink alerts · running<br>topic {name}-large<br>10 rows/s out, lag 7"]' in flowchart


def test_a_graph_needs_no_cluster(headrace: Command, pipeline: Path) -> None:
    done = headrace("pipeline", "graph", str(pipeline), "--bootstrap", "127.0.0.1:1", "--json")

    assert done.status == 0
    assert done.err.startswith("without rates: ")
    assert [each["name"] for each in done.json["nodes"]] == [
        "orders",
        "large",
        "alerts",
        "archive",
        "orders.dead-letters",
    ]


def test_a_topic_that_is_not_there_is_named_before_spark_starts(headrace: Command, tmp_path: Path) -> None:
    path = tmp_path / "lonely.py"
    path.write_text(FILE.format(name="lonely"))
    for verb in ("run", "explain"):
        said = headrace("pipeline", verb, str(path)).complaint
        assert said.startswith("there is no topic 'lonely-orders': create it")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("x = 1", 'has no pipeline; expected one: pipeline = Pipeline("wrong")'),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("from headrace.pipeline import Pipeline\np = Pipeline('p')", "pipeline p has no sink"),
        (
            "from headrace.pipeline import *\np = Pipeline('p')\np.sink(Delta('d'), mode='update')",
            "Delta table d supports mode append or complete, not update",
        ),
    ],
)
def test_a_file_that_is_no_pipeline_is_refused_with_a_sentence(
    headrace: Command, tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "wrong.py").write_text(text)
    for verb in ("run", "check", "explain", "reset", "stop"):
        assert sentence in headrace("pipeline", verb, str(tmp_path / "wrong.py")).complaint


def test_a_file_that_is_not_there_is_named(headrace: Command) -> None:
    assert "there is no file" in headrace("pipeline", "run", "nowhere.py").complaint
    assert "there is no file nowhere.py" in headrace("pipeline", "stop", "nowhere.py").complaint


def test_a_pipeline_that_nobody_has_run_has_no_status(headrace: Command) -> None:
    said = headrace("pipeline", "status", "unheard-of").complaint
    assert said == "pipeline unheard-of is not known: has it ever run?"


def test_status_tells_the_last_words_of_every_query(headrace: Command, pipeline: Path) -> None:
    name = pipeline.stem
    told = [
        Progress(pipeline=name, query=f"{name}.alerts", event="started", at_ms=1),
        Progress(
            pipeline=name,
            query=f"{name}.alerts",
            event="batch",
            at_ms=2,
            batch=7,
            rows=30,
            written=10,
            took_ms=1500,
            lag=4,
            lags={f"{name}-orders-0": 4},
        ),
        Progress(pipeline=name, query=f"{name}.alerts", event="restarting", at_ms=3, error="no leader"),
        Progress(pipeline=name, query=f"{name}.alerts", event="started", at_ms=4, restarts=1),
        Progress(
            pipeline=name,
            query=f"{name}.alerts",
            event="batch",
            at_ms=5,
            batch=7,
            lag=4,
            broken={"orders": {"has an id": 2}},
        ),
        Progress(pipeline=name, query=f"{name}.alerts", event="failed", at_ms=6, error="it broke"),
    ]
    tell(headrace, told)

    (found,) = headrace.ok("pipeline", "status", name, "--json").json
    assert (found["pipeline"], found["state"], found["pid"]) == (name, "failed", None)
    (query,) = found["queries"]
    assert (query["batches"], query["rows"], query["written"], query["error"]) == (1, 30, 10, "it broke")
    lines = headrace.ok("pipeline", "status", str(pipeline)).text.splitlines()
    assert lines[0] == f"pipeline {name}: failed"
    assert lines[3].split()[:6] == ["alerts", "failed", "7", "0", "0", "4"]
    assert [line for line in lines[4:] if line] == [
        f"{name}.alerts: expectation orders: has an id broken by 2 rows",
        f"{name}.alerts was restarted 1 time, the last time because: no leader",
        f"{name}.alerts failed: it broke",
    ]


def test_status_and_stop_know_the_process_that_runs_it(headrace: Command, pipeline: Path) -> None:
    holding = (
        "import sys, time; from pathlib import Path; from headrace.pipeline.state import PipelineState\n"
        "with PipelineState(Path(sys.argv[1]), sys.argv[2]).running():\n"
        "    print('holding', flush=True); time.sleep(60)"
    )
    root = pipeline.parent / ".headrace"
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(root), pipeline.stem], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        status = headrace.ok("pipeline", "status", str(pipeline)).text
        assert status.startswith(f"pipeline {pipeline.stem}: running, process {process.pid}")
        for verb in (("run",), ("reset", "--yes"), ("replay", "--from", "2026-01-01", "--yes")):
            said = headrace("pipeline", verb[0], str(pipeline), *verb[1:]).complaint
            assert f"as process {process.pid}" in said
        done = headrace.ok("pipeline", "stop", pipeline.stem, "--state", str(root))
        assert done.text == f"stopped {pipeline.stem}, process {process.pid}\n"
        process.wait(10)
    assert "is not running" in headrace("pipeline", "stop", str(pipeline)).complaint


def test_reset_forgets_checkpoints_but_not_without_being_told(headrace: Command, pipeline: Path) -> None:
    checkpoint = has_run(pipeline, "alerts", {"0": 1})
    assert "give --yes" in headrace("pipeline", "reset", str(pipeline)).complaint
    assert checkpoint.is_dir()
    done = headrace.ok("pipeline", "reset", str(pipeline), "--yes")
    assert "deleted 1 checkpoint, its sinks keep their rows" in done.text
    assert not checkpoint.exists()


def test_a_replay_is_explained_and_needs_a_time(headrace: Command, pipeline: Path) -> None:
    has_run(pipeline, "alerts", {"0": 1})
    wrong = headrace("pipeline", "replay", str(pipeline), "--from", "yesterday", "--yes").complaint
    assert "--from yesterday: expected a time" in wrong
    done = headrace.ok("pipeline", "replay", str(pipeline), "--from", "2030-01-01T00:00Z", "--yes").text
    assert "starts with records since 2030-01-01T00:00:00Z" in done
    assert "get the rows of that time again" in done
    lines = headrace.ok("pipeline", "explain", str(pipeline)).text.splitlines()
    assert lines.count("  starts with records since 2030-01-01T00:00:00Z: 0 records to read") == 3


def test_files_of_a_pipeline_that_was_forgotten_are_not_added_to(headrace: Command, pipeline: Path) -> None:
    (pipeline.parent / "files" / "_spark_metadata").mkdir(parents=True)
    (pipeline.parent / "files" / "_spark_metadata" / "3").touch()
    said = headrace("pipeline", "run", str(pipeline)).complaint
    assert "batches 0 to 3" in said
    assert "move the directory away" in said
