"""`headrace pipeline run --deploy-mode cluster`: have spark-submit start the driver on the cluster."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile

from headrace.cli.pipeline import driver as pipeline_driver
from headrace.cli.pipeline.commands import OpenedPipeline
from headrace.cli.support.session import Session
from headrace.pipeline.errors import PipelineError
from headrace.spark.submission import Submission, is_archive, location


def submit(
    session: Session,
    opened: OpenedPipeline,
    root: Path | str | None,
    *,
    master: str | None,
    environment: str | None,
    settings: Mapping[str, str],
    once: bool,
) -> None:
    """Submit the pipeline, and pass on the output of spark-submit until it ends."""
    if environment is None or root is None:
        missing = "--environment" if environment is None else "--state, on storage that all machines share"
        raise PipelineError(f"--deploy-mode cluster needs {missing}: the driver may run on any machine")
    if is_archive(environment) and "://" not in environment and not Path(environment).is_file():
        raise PipelineError(f"there is no archive {environment}: `headrace pipeline pack` builds one")
    arguments = [f"{location(environment)}/pipeline/{opened.path.name}"]
    arguments += ["--state", str(opened.state.path.parent), "--bootstrap", opened.bootstrap]
    if session.command_config_path is not None:
        arguments += ["--command-config", str(session.command_config_path)]
    submission = Submission(
        name=opened.pipeline.name,
        master=master or "",
        environment=environment,
        program=pipeline_driver.__file__,
        arguments=[*arguments, "--once"] if once else arguments,
        settings={**opened.pipeline.settings, **settings},
        supervise=not once,
    )
    _spark_submit(submission)
    # A standalone cluster's spark-submit returns at once, the others when the driver has ended.
    done = "submitted" if submission.master.startswith("spark://") else "ended"
    name = submission.name
    session.show(
        {"pipeline": name, "master": submission.master, "event": done},
        f"{done} {name} on {submission.master}: `headrace pipeline status {name}` shows its progress",
    )


def _spark_submit(submission: Submission) -> None:
    """Run spark-submit; PipelineError if it fails."""
    import pyspark  # noqa: PLC0415

    from headrace.spark.launcher import prepare  # noqa: PLC0415

    prepare(submission.master)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    program = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    with NamedTemporaryFile("w", prefix="headrace-", suffix=".conf") as file:  # only its owner can read it
        file.write(submission.properties())
        file.flush()
        command = [str(program), *submission.command(Path(file.name))]
        ended = subprocess.run(command, env=environment, check=False)  # noqa: S603  Spark's own program
    if ended.returncode:
        raise PipelineError(f"spark-submit failed with exit status {ended.returncode}, for the reason above")
