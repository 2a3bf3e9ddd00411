"""Triggered pipelines: projects of Spark Declarative Pipelines, which Spark's own command runs."""

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

from headrace.cli.pipeline.commands import project
from headrace.cli.support.session import Session
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.state import DIRECTORY, State
from headrace.system.background import BackgroundThread

_HIVE: Final = {
    # Without a persistent catalog, a second run fails because the directories of its tables exist.
    "spark.sql.catalogImplementation": "hive"
}

_NOISE: Final = "ignore::UserWarning:pyspark.sql.connect.conf"  # Spark tries to set the catalog twice


def run_project(
    session: Session, path: Path, root: Path | str | None, *, master: str, settings: Mapping[str, str]
) -> None:
    """Run the project to the current end of its topics."""

    def tell(line: str) -> None:
        as_json = json.dumps({"line": line.rstrip("\n")}, ensure_ascii=False)
        click.echo(as_json if session.as_json else line, nl=session.as_json)

    _spark_pipelines("run", session, path, root, master=master, settings=settings, tell=tell)


def check_project(session: Session, path: Path, root: Path | str | None) -> None:
    """Have Spark check the project."""

    def tell(line: str) -> None:
        if not session.as_json:  # --json prints one object at the end
            click.echo(line, nl=False)

    _spark_pipelines("dry-run", session, path, root, master="local[1]", settings={}, tell=tell)
    says = "Spark has found nothing wrong"
    result = [{"good": True, "what": str(path), "says": says}]
    session.show(result, f"{click.style('ok', fg='green')}  {path}: {says}")


def _spark_pipelines(
    verb: str,
    session: Session,
    path: Path,
    root: Path | str | None,
    *,
    master: str,
    settings: Mapping[str, str],
    tell: Callable[[str], None],
) -> None:
    import pyspark  # noqa: PLC0415

    from headrace.spark.launcher import defaults, prepare  # noqa: PLC0415

    if not master.startswith(("local", "sc://")):
        raise PipelineError(f"a project runs locally or with Spark Connect (sc://HOST), not on {master}")
    spec = project(path)
    assert spec is not None, path
    spec = spec.absolute()
    if isinstance(root, str):
        raise PipelineError(
            f"the state of a project has to be in a local directory, not {root}: its storage may not"
        )
    state = State((root or spec.parent / DIRECTORY).absolute(), spec.parent.name)
    assert isinstance(state.path, Path), state.path
    prepare()
    conf = {**defaults(master), **_HIVE, **settings}
    # Neither the metastore nor its log is in the current directory.
    metastore = f"jdbc:derby:;databaseName={state.path / 'metastore'};create=true"
    conf["spark.hadoop.javax.jdo.option.ConnectionURL"] = metastore
    conf["spark.driver.extraJavaOptions"] += f" -Dderby.system.home={state.path}"
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")
    command = [program, verb, "--spec", str(spec), "--remote", master]
    with state.running():
        # In a file, because Spark Connect loses some settings of the command line.
        configuration = state.path / "conf"
        configuration.mkdir(exist_ok=True)
        lines = [f"{name} {value}\n" for name, value in conf.items()]
        (configuration / "spark-defaults.conf").write_text("".join(lines))
        environment = {"HEADRACE_BOOTSTRAP": session.bootstrap, "SPARK_CONF_DIR": str(configuration)}
        _follow(command, spec.parent, {**os.environ, **environment, "PYTHONWARNINGS": _NOISE}, tell)


def _follow(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Run the command and pass on its lines as they arrive; raise PipelineError if it fails."""
    signal.signal(signal.SIGTERM, _exit)
    process = subprocess.Popen(  # noqa: S603  Spark's own program
        command,
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # so that Java and the Python that it starts are stopped together
    )
    assert process.stdout is not None
    assert process.stderr is not None
    said = ["the run has failed, for the reason above\n"]  # unless the output has an error message
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
