"""The demo from its beginning to its end, step by step."""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import click

from headrace import __version__
from headrace.cli.demo import trucks
from headrace.cli.demo.fleet import Fleet
from headrace.cli.demo.machine import Up
from headrace.cli.demo.show import Figures, Show
from headrace.cli.demo.story import BROKERS, PARTITIONS, Crash, Story, ends_of
from headrace.cli.interrupts import ctrl_c_waits
from headrace.cli.process import Refused
from headrace.cli.session import Session, as_json_option
from headrace.client.admin.admin import Admin
from headrace.spark import launcher

SAFE: Final = {"min.insync.replicas": "2"}
YOURS: Final = "\nYours: headrace up --brokers 3 --data DIR, and `headrace pipeline init` for a pipeline."


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What was counted at the end. There is none of these if a position is missing, or there twice."""

    brokers: int
    positions: int
    rows: int
    speeds: int
    alerts: int
    crash: Crash


@click.command()
@click.option("--seconds", default=8, show_default=True, help="How long to drive before and after the crash.")
@as_json_option
@click.pass_obj
def demo(session: Session, seconds: int) -> None:
    """Kill a broker and lose nothing:  headrace demo

    Runs a cluster, a fleet of trucks and a Spark pipeline, kills a broker, and counts what is in the table.
    Everything is in a temporary directory, and gone at the end.
    """
    with tempfile.TemporaryDirectory(prefix="headrace-", ignore_cleanup_errors=True) as name:
        found = _Demo(Path(name), Show(aside=session.as_json), seconds).play()
    session.show(found, YOURS)


class _Demo:
    def __init__(self, directory: Path, show: Show, seconds: int) -> None:
        self._table = directory / "positions"
        self._state = directory / "state"
        self._show = show
        self._seconds = seconds
        self._up = Up(directory, BROKERS)

    def play(self) -> Summary:
        self._show.title(f"Headrace {__version__}: three brokers, sixty trucks, Spark, and a kill -9")
        with self._up as up:
            self._show.step("started", f"headrace up --brokers {BROKERS}, at {up.bootstrap}", up.took_s)
            self._create_topics()
            fleet = Fleet(up.bootstrap, trucks.POSITIONS)
            fleet.start()
            try:
                crash = self._run(fleet)
            except BaseException:
                fleet.break_off()
                raise
            fleet.stop()
            found = self._count(fleet, crash)
            began = time.perf_counter()
            up.stop()
            self._show.step("stopped", "all of it, cleanly", time.perf_counter() - began)
        return found

    def _create_topics(self) -> None:
        admin = Admin(self._up.bootstrap)
        for topic in (trucks.POSITIONS, trucks.SPEEDS, trucks.ALERTS):
            admin.create_topic(topic, partitions=PARTITIONS, replicas=BROKERS, configs=SAFE)
        self._show.step("created", f"topics of {PARTITIONS} partitions with {BROKERS} replicas each")

    def _run(self, fleet: Fleet) -> Crash:
        began = time.perf_counter()
        with ctrl_c_waits():
            spark = launcher.session("trucks", log=self._state / "spark.log")
        from headrace.pipeline.observers import Groups  # noqa: PLC0415  they know Spark
        from headrace.pipeline.runner import Runner  # noqa: PLC0415
        from headrace.pipeline.state import State  # noqa: PLC0415

        self._show.step("started", "Spark, on this machine's cores", time.perf_counter() - began)
        pipeline = trucks.pipeline(self._table)
        figures, groups = Figures(self._show, fleet), Groups(self._up.bootstrap)
        state = State(self._state, pipeline.name)
        runner = Runner(spark, pipeline, self._up.bootstrap, state, [figures, groups])
        self._show.step("started", f"pipeline {pipeline.name}: {', '.join(pipeline.sinks)}")
        story = Story(self._up, fleet, figures, self._show, self._seconds)
        story.begin(when_over=runner.stop)
        try:
            with figures:
                runner.run()
        finally:
            story.end()
            groups.close()
            spark.stop()
        if story.crash is None:
            raise Refused("the pipeline ended before a broker was killed")
        return story.crash

    def _count(self, fleet: Fleet, crash: Crash) -> Summary:
        """Every position that was acknowledged is in the table, once."""
        from deltalake import DeltaTable  # noqa: PLC0415  it comes with Spark

        table = DeltaTable(str(self._table)).to_pyarrow_table(columns=["truck", "number"])
        rows, distinct = table.num_rows, table.group_by(["truck", "number"]).aggregate([]).num_rows
        speeds = self._written(trucks.SPEEDS, "windows of speed and distance")
        alerts = self._written(trucks.ALERTS, "alerts")
        if fleet.failed or not rows == distinct == fleet.acknowledged == fleet.sent:
            raise Refused(
                f"{fleet.sent:,} positions were sent and {fleet.acknowledged:,} acknowledged; "
                f"the table has {rows:,} rows, {distinct:,} of them different"
            )
        told = f"{fleet.sent:,} positions sent, {rows:,} in the table: none missing, none twice"
        self._show.step("counted", told)
        return Summary(
            brokers=BROKERS, positions=fleet.sent, rows=rows, speeds=speeds, alerts=alerts, crash=crash
        )

    def _written(self, topic: str, what: str) -> int:
        written = sum(ends_of(self._up.bootstrap, topic).values())
        self._show.step("wrote", f"{written:,} {what} to {topic}")
        return written
