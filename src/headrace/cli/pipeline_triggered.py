"""Triggered pipelines: projects of Spark Declarative Pipelines, run by Spark's own command."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from headrace.cli.pipeline_files import project
from headrace.cli.session import Session
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.state import DIRECTORY, State

_HIVE: Final = {
    # Without a catalog that remembers tables, a second run finds their directories taken.
    "spark.sql.catalogImplementation": "hive",
}


def run_project(
    session: Session, path: Path, root: Path | None, *, master: str, settings: Mapping[str, str]
) -> None:
    """Run it to the end of what is there."""
    _spark_pipelines("run", session, path, root, master=master, settings=settings)


def check_project(session: Session, path: Path, root: Path | None) -> None:
    """Let Spark look at all that it is made of."""
    _spark_pipelines("dry-run", session, path, root, master="local[1]", settings={})
    click.echo(f"{click.style('ok', fg='green')}  {path}: Spark has found nothing wrong")


def _spark_pipelines(
    verb: str, session: Session, path: Path, root: Path | None, *, master: str, settings: Mapping[str, str]
) -> None:
    from headrace.spark.launcher import defaults, prepare  # noqa: PLC0415

    spec = project(path)
    assert spec is not None, path
    spec = spec.absolute()
    kept = (root or spec.parent / DIRECTORY).absolute()
    state = State(kept, spec.parent.name)
    prepare()
    conf = {**defaults(master), **_HIVE, **_places(state.path), **settings}
    conf["spark.driver.extraJavaOptions"] = " ".join(
        [defaults(master)["spark.driver.extraJavaOptions"], f"-Dderby.system.home={state.path}"]
    )
    command = [_program(), verb, "--spec", str(spec), "--master", master]
    for name, value in conf.items():
        command += ["--conf", f"{name}={value}"]
    with state.running():
        _follow(command, spec.parent, session.bootstrap)


def _places(directory: Path) -> dict[str, str]:
    """Where tables, and what is known of them, are kept: with the state, not where one happens to be."""
    metastore = f"jdbc:derby:;databaseName={directory / 'metastore'};create=true"
    return {
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": metastore,
    }


def _program() -> str:
    import pyspark  # noqa: PLC0415

    return str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")


def _follow(command: Sequence[str], directory: Path, bootstrap: str) -> None:
    """Run it, with its lines as they come; PipelineError in a sentence if it fails."""
    environment = os.environ | {"HEADRACE_BOOTSTRAP": bootstrap}
    signal.signal(signal.SIGTERM, _exit)
    process = subprocess.Popen(  # noqa: S603  Spark's own program
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Java and the Python that it starts end together
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said: list[str] = []
    listening = threading.Thread(target=said.extend, args=(process.stderr,))
    listening.start()
    try:
        for line in process.stdout:
            click.echo(line, nl=False)
            sys.stdout.flush()
        status = process.wait()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        listening.join()
    if status:
        raise PipelineError(in_words(RuntimeError("".join(said))))


def _exit(number: int, _frame: object) -> None:
    sys.exit(128 + number)
