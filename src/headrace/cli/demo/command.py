"""The demo from its start to its end, step by step."""

import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
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

TOPIC_SETTINGS: Final = {"min.insync.replicas": "2"}
NEXT_STEPS: Final = (
    "\nYour turn: headrace up --brokers 3 --data DIR, and `headrace pipeline init` for a pipeline."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was counted at the end; the demo fails before that if anything is missing or written twice."""

    brokers: int
    positions: int
    rows: int
    speeds: int
    alerts: int
    crash: Crash


@click.command()
@click.option("--seconds", default=8, help="How long the trucks drive before and after the crash.")
@json_option
def demo(session: Session, seconds: int) -> None:
    """Kill a broker and lose nothing:  headrace demo

    Runs a cluster, a fleet of trucks and a Spark pipeline, kills a broker, and checks that every position is
    in the table once, and every alert and window in its topic. Everything is in a temporary directory, which
    is deleted at the end.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as name:
        summary = _Demo(Path(name), Show(on_stderr=session.as_json), seconds).run()
    session.show(summary, NEXT_STEPS)


class _Demo:
    def __init__(self, directory: Path, show: Show, seconds: int) -> None:
        self._directory = directory
        self._table = directory / "positions"
        self._state = directory / "state"
        self._show = show
        self._seconds = seconds
        self._bootstrap = ""
        self._late_rows = 0

    def run(self) -> Summary:
        self._show.title(f"Headrace {__version__}: three brokers, sixty trucks, Spark, and a kill -9")
        with ExitStack() as cluster:
            began = time.perf_counter()
            self._bootstrap = cluster.enter_context(temporary_cluster(self._directory, BROKERS))
            started = f"headrace up --brokers {BROKERS}, at {self._bootstrap}"
            self._show.step("started", started, time.perf_counter() - began)
            admin = Admin(self._bootstrap)
            for topic in (trucks.POSITIONS, trucks.SPEEDS, trucks.ALERTS):
                admin.create_topic(topic, partitions=PARTITIONS, replicas=BROKERS, configs=TOPIC_SETTINGS)
            self._show.step("created", f"topics of {PARTITIONS} partitions with {BROKERS} replicas each")
            fleet = Fleet(self._bootstrap, trucks.POSITIONS)
            fleet.start()
            try:
                crash = self._run_pipeline(fleet)
            except BaseException:
                fleet.stop_sending()
                raise
            fleet.stop()
            summary = self._count(fleet, crash)
            began = time.perf_counter()
            cluster.close()
            self._show.step("stopped", "everything, cleanly", time.perf_counter() - began)
        return summary

    def _run_pipeline(self, fleet: Fleet) -> Crash:
        began = time.perf_counter()
        with ctrl_c_waits():
            spark = launcher.session("trucks", log=self._state / "spark.log")
        from headrace.pipeline.observers import Groups  # noqa: PLC0415  these import Spark
        from headrace.pipeline.runner import Runner  # noqa: PLC0415
        from headrace.pipeline.state import State  # noqa: PLC0415

        self._show.step("started", "Spark, on this machine's cores", time.perf_counter() - began)
        pipeline = trucks.pipeline(self._table)
        figures, groups = Figures(self._show, fleet), Groups(self._bootstrap)
        state = State(self._state, pipeline.name)
        runner = Runner(spark, pipeline, self._bootstrap, state, [figures, groups])
        self._show.step("started", f"pipeline {pipeline.name}: {', '.join(pipeline.sinks)}")
        story = Story(self._bootstrap, fleet, figures, self._show, self._seconds)
        story.start(at_end=runner.stop)
        try:
            with figures.live():
                runner.run()
        finally:
            story.stop()
            groups.close()
            spark.stop()
        self._late_rows = sum(query.late_rows for query in figures.all())
        if story.crash is None:
            raise CommandFailed("the pipeline ended before a broker was killed")
        return story.crash

    def _count(self, fleet: Fleet, crash: Crash) -> Summary:
        """Raise CommandFailed unless all acknowledged positions, and what follows of them, are there once."""
        from deltalake import DeltaTable  # noqa: PLC0415  it comes with Spark

        table = DeltaTable(str(self._table)).to_pyarrow_table(columns=["truck", "number", "at", "kmh"])
        rows, distinct = table.num_rows, table.group_by(["truck", "number"]).aggregate([]).num_rows
        if fleet.failed or not rows == distinct == fleet.acknowledged == fleet.sent:
            raise CommandFailed(
                f"{fleet.sent:,} positions were sent and {fleet.acknowledged:,} acknowledged; "
                f"the table has {rows:,} rows, {distinct:,} of them distinct"
            )
        line = f"{fleet.sent:,} positions sent, {rows:,} in the table: none missing, none twice"
        self._show.step("counted", line)
        positions = [Position(**row) for row in table.to_pylist()]
        alerts = read_topic(self._bootstrap, trucks.ALERTS)
        speeds = read_topic(self._bootstrap, trucks.SPEEDS)
        wrong = alert_errors(positions, alerts)
        wrong += window_errors(positions, speeds, late_rows=self._late_rows)
        if wrong:
            raise CommandFailed("; ".join(wrong[:5]))
        line = f"{len(alerts):,} alerts and {len(speeds):,} windows in their topics, each exactly once"
        self._show.step("compared", line)
        return Summary(
            brokers=BROKERS,
            positions=fleet.sent,
            rows=rows,
            speeds=len(speeds),
            alerts=len(alerts),
            crash=crash,
        )
