"""The demo from its start to its end, step by step."""

import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from headrace import __version__
from headrace.cli.demo import trucks
from headrace.cli.demo.show import Figures, Show
from headrace.cli.demo.story import BROKERS, PARTITIONS, Crash, Story
from headrace.cli.demo.trucks import Fleet
from headrace.cli.demo.verification import Position, alert_errors, read_topic, window_errors
from headrace.cli.support.interrupts import ctrl_c_waits
from headrace.cli.support.process import CommandFailed
from headrace.cli.support.session import Session, json_option
from headrace.cli.support.temporary_cluster import temporary_cluster
from headrace.client.admin.admin import Admin
from headrace.spark import launcher

TABLE: Final = "positions"
TOPIC_SETTINGS: Final = {"min.insync.replicas": "2"}
NEXT_STEPS: Final = (
    "\nYour turn: headrace up --brokers 3 --data DIR, and `headrace pipeline init` for a pipeline."
)


@click.command()
@click.option("--seconds", default=8, help="How long the trucks drive before and after the crash.")
@json_option
def demo(session: Session, seconds: int) -> None:
    """Kill a broker and lose nothing:  headrace demo

    Runs a cluster, a fleet of trucks and a Spark pipeline, kills a broker, and checks that every position is
    in the table once, and every alert and window in its topic. Everything is in a temporary directory, which
    is deleted at the end.
    """
    show = Show(on_stderr=session.as_json)
    with (
        tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as name,
        ExitStack() as stack,
    ):
        directory = Path(name)
        show.title(f"Headrace {__version__}: three brokers, sixty trucks, Spark, and a kill -9")
        began = time.perf_counter()
        bootstrap = stack.enter_context(temporary_cluster(directory, BROKERS))
        started = f"headrace up --brokers {BROKERS}, at {bootstrap}"
        show.step("started", started, time.perf_counter() - began)
        admin = Admin(bootstrap)
        for topic in (trucks.POSITIONS, trucks.SPEEDS, trucks.ALERTS):
            admin.create_topic(topic, partitions=PARTITIONS, replicas=BROKERS, configs=TOPIC_SETTINGS)
        show.step("created", f"topics of {PARTITIONS} partitions with {BROKERS} replicas each")
        fleet = Fleet(bootstrap, trucks.POSITIONS)
        fleet.start()
        try:
            crash, late_rows = _run_pipeline(directory, bootstrap, fleet, show, seconds)
        except BaseException:
            fleet.stop_sending()
            raise
        fleet.stop()
        counted = _count(directory, bootstrap, fleet, show, late_rows)
        began = time.perf_counter()
        stack.close()
        show.step("stopped", "everything, cleanly", time.perf_counter() - began)
    session.show({"brokers": BROKERS, "positions": fleet.sent, **counted, "crash": crash}, NEXT_STEPS)


def _run_pipeline(
    directory: Path, bootstrap: str, fleet: Fleet, show: Show, seconds: int
) -> tuple[Crash, int]:
    """Run the pipeline while a broker is killed; return what happened, and how many rows were late."""
    began = time.perf_counter()
    with ctrl_c_waits():
        spark = launcher.session("trucks", log=directory / "state" / "spark.log")
    from headrace.pipeline.observers import Groups  # noqa: PLC0415  these import Spark
    from headrace.pipeline.runner import Runner  # noqa: PLC0415
    from headrace.pipeline.state import PipelineState  # noqa: PLC0415

    show.step("started", "Spark, on this machine's cores", time.perf_counter() - began)
    pipeline = trucks.pipeline(directory / TABLE)
    figures, groups = Figures(show, fleet), Groups(bootstrap)
    runner = Runner(
        spark, pipeline, bootstrap, PipelineState(directory / "state", pipeline.name), [figures, groups]
    )
    show.step("started", f"pipeline {pipeline.name}: {', '.join(pipeline.sinks)}")
    story = Story(bootstrap, fleet, figures, show, seconds)
    story.start(at_end=runner.stop)
    try:
        with figures.live():
            runner.run()
    finally:
        story.stop()
        groups.close()
        spark.stop()
    if story.crash is None:
        raise CommandFailed("the pipeline ended before a broker was killed")
    return story.crash, sum(query.late_rows for query in figures.all())


def _count(directory: Path, bootstrap: str, fleet: Fleet, show: Show, late_rows: int) -> dict[str, int]:
    """Raise CommandFailed unless all acknowledged positions, and what follows of them, are there once."""
    from deltalake import DeltaTable  # noqa: PLC0415  it comes with Spark

    table = DeltaTable(str(directory / TABLE)).to_pyarrow_table(columns=["truck", "number", "at", "kmh"])
    rows, distinct = table.num_rows, table.group_by(["truck", "number"]).aggregate([]).num_rows
    if fleet.failed or not rows == distinct == fleet.acknowledged == fleet.sent:
        raise CommandFailed(
            f"{fleet.sent:,} positions were sent and {fleet.acknowledged:,} acknowledged; "
            f"the table has {rows:,} rows, {distinct:,} of them distinct"
        )
    show.step("counted", f"{fleet.sent:,} positions sent, {rows:,} in the table: none missing, none twice")
    positions = [Position(**row) for row in table.to_pylist()]
    alerts, speeds = read_topic(bootstrap, trucks.ALERTS), read_topic(bootstrap, trucks.SPEEDS)
    wrong = alert_errors(positions, alerts) + window_errors(positions, speeds, late_rows=late_rows)
    if wrong:
        raise CommandFailed("; ".join(wrong[:5]))
    line = f"{len(alerts):,} alerts and {len(speeds):,} windows in their topics, each exactly once"
    show.step("compared", line)
    return {"rows": rows, "speeds": len(speeds), "alerts": len(alerts)}
