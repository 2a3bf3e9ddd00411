"""Triggered pipelines: projects of Spark Declarative Pipelines, which Spark's own command runs."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Final

import click

from headrace.cli.support.output import to_json
from headrace.cli.support.session import Session
from headrace.pipeline.errors import PipelineError, in_words
from headrace.pipeline.state import DIRECTORY, PipelineState

_NOISE: Final = "ignore::UserWarning:pyspark.sql.connect.conf"  # Spark tries to set the catalog twice


def run_project(
    session: Session,
    spec: Path,
    root: Path | str | None,
    *,
    master: str,
    settings: Mapping[str, str],
    dry_run: bool = False,
) -> None:
    """Run the project to the current end of its topics; with `dry_run`, Spark only validates it."""
    import pyspark  # noqa: PLC0415

    from headrace.spark.launcher import defaults, is_connect, prepare  # noqa: PLC0415

    if not (master.startswith("local") or is_connect(master)):
        raise PipelineError(f"a project runs locally or with Spark Connect (sc://HOST), not on {master}")
    state = PipelineState(root or spec.parent / DIRECTORY, spec.parent.name)
    if not isinstance(state.path, Path):
        raise PipelineError(
            f"the state of a project has to be in a local directory, not {root}; "
            f"the storage that {spec.name} names may be elsewhere"
        )
    prepare()
    home = state.path.absolute()
    conf = {
        **defaults(master),
        # Without a persistent catalog, a second run fails because the directories of its tables exist.
        "spark.sql.catalogImplementation": "hive",
        **settings,
    }
    metastore = f"jdbc:derby:;databaseName={home}/metastore;create=true"
    conf["spark.hadoop.javax.jdo.option.ConnectionURL"] = metastore
    conf["spark.driver.extraJavaOptions"] += f" -Dderby.system.home={home}"  # where Derby writes its log
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-pipelines")
    command = [program, "dry-run" if dry_run else "run", "--spec", str(spec), "--remote", master]

    def show(line: str) -> None:
        if not session.as_json:
            click.echo(line, nl=False)
        elif not dry_run:
            click.echo(to_json({"line": line.rstrip("\n")}))

    with state.running():
        # In a file, because Spark Connect loses some settings of the command line.
        configuration = home / "conf"
        configuration.mkdir(exist_ok=True)
        lines = [f"{name} {value}\n" for name, value in conf.items()]
        (configuration / "spark-defaults.conf").write_text("".join(lines))
        environment = {"HEADRACE_BOOTSTRAP": session.bootstrap, "SPARK_CONF_DIR": str(configuration)}
        _follow(command, spec.parent, {**os.environ, **environment, "PYTHONWARNINGS": _NOISE}, show)


def _follow(
    command: Sequence[str], directory: Path, environment: Mapping[str, str], show: Callable[[str], None]
) -> None:
    """Run the command and show its lines as they arrive; raise PipelineError if it fails."""
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with TemporaryFile("w+") as errors:
        process = subprocess.Popen(  # noqa: S603  Spark's own program
            command,
            cwd=directory,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,  # so that Java and the Python that it starts are stopped together
        )
        assert process.stdout is not None
        printed = ["the run has failed, for the reason above\n"]  # unless the output has an error message
        try:
            for line in process.stdout:
                printed.append(line)
                show(line)
                sys.stdout.flush()
            status = process.wait()
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.wait()
        if status:
            errors.seek(0)
            raise PipelineError(in_words(RuntimeError("".join([*printed, *errors]))))
