"""Triggered pipelines: projects of Spark Declarative Pipelines, run by Spark's own command."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click

from headrace.background import BackgroundThread
from headrace.cli.pipeline_files import project
from headrace.cli.session import Session
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.state import DIRECTORY, State

_HIVE: Final = {
    # Without a catalog that remembers tables, a second run finds their directories taken.
    "spark.sql.catalogImplementation": "hive",
}

_NOISE: Final = "ignore::UserWarning:pyspark.sql.connect.conf"  # it tries to set the above a second time


def run_project(
    session: Session, path: Path, root: Path | None, *, master: str, settings: Mapping[str, str]
) -> None:
    """Run it to the end of what is there."""
    tell = _as_object if session.as_json else _as_it_is
    _spark_pipelines("run", session, path, root, master=master, settings=settings, tell=tell)


def check_project(session: Session, path: Path, root: Path | None) -> None:
    """Let Spark look at all that it is made of."""
    tell = _not_at_all if session.as_json else _as_it_is
    _spark_pipelines("dry-run", session, path, root, master="local[1]", settings={}, tell=tell)
    says = "Spark has found nothing wrong"
    session.show(
        [{"good": True, "what": str(path), "says": says}],
        f"{click.style('ok', fg='green')}  {path}: {says}",
    )


def _as_it_is(line: str) -> None:
    click.echo(line, nl=False)


def _as_object(line: str) -> None:
    click.echo(json.dumps({"line": line.rstrip("\n")}, ensure_ascii=False))


def _not_at_all(_line: str) -> None:
    """What there is to say is one object, at the end."""


def _spark_pipelines(
    verb: str,
    session: Session,
    path: Path,
    root: Path | None,
    *,
    master: str,
    settings: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    from headrace.spark.launcher import defaults, prepare  # noqa: PLC0415

    if not master.startswith(("local", "sc://")):
        raise PipelineError(f"a project runs locally or by Spark Connect, sc://HOST, not on {master}")
    spec = project(path)
    assert spec is not None, path
    spec = spec.absolute()
    kept = (root or spec.parent / DIRECTORY).absolute()
    state = State(kept, spec.parent.name)
    prepare()
    conf = {**defaults(master), **_HIVE, **settings}
    conf["spark.hadoop.javax.jdo.option.ConnectionURL"] = _metastore(state.path)
    conf["spark.driver.extraJavaOptions"] += f" -Dderby.system.home={state.path}"  # its log goes there
    command = [_program(), verb, "--spec", str(spec), "--remote", master]
    with state.running():
        # In a file, for of settings on the command line Spark Connect may lose some on their way.
        configuration = state.path / "conf"
        configuration.mkdir(exist_ok=True)
        lines = [f"{name} {value}\n" for name, value in conf.items()]
        (configuration / "spark-defaults.conf").write_text("".join(lines))
        said = {"HEADRACE_BOOTSTRAP": session.bootstrap, "SPARK_CONF_DIR": str(configuration)}
        _follow(command, spec.parent, {**os.environ, **said, "PYTHONWARNINGS": _NOISE}, tell)


def _metastore(directory: Path) -> str:
    """What is known of tables is kept with the state, not where one happens to be."""
    return f"jdbc:derby:;databaseName={directory / 'metastore'};create=true"


def _program() -> str:
    import pyspark  # noqa: PLC0415

    return str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")


def _follow(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Run it, with its lines as they come; PipelineError in a sentence if it fails."""
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
    said = ["the run has failed, and Spark has said why above\n"]  # unless there are better words
    listening = BackgroundThread(
        said.extend, args=(process.stderr,), name="pipeline-stderr", stop=process.kill
    )
    listening.start()
    try:
        for line in process.stdout:
            said.append(line)
            tell(line)
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
