"""`headrace pipeline init`: create a small pipeline that runs."""

import json
import re
from pathlib import Path

import click

from headrace.cli.pipeline.commands import SPECS, LocalDirectory
from headrace.cli.support.session import Session, options
from headrace.pipeline.declaration import check_name
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import DIRECTORY
from headrace.pipeline.storage.files import spark_url


@click.command()
@click.argument("name")
@click.option(
    "--triggered", is_flag=True, help="A project of Spark Declarative Pipelines: each run ends by itself."
)
@click.option(
    "--directory",
    metavar="DIR",
    type=LocalDirectory("a pipeline"),
    default=Path(),
    show_default=False,
    help="Where to create it. Default: the current directory.",
)
@options
def init(session: Session, name: str, directory: Path, *, triggered: bool) -> None:
    """Create a pipeline to start from:  headrace pipeline init orders

    It runs as it is; its first lines show how to write records for it. Existing files are not overwritten.
    """
    check_name("a pipeline", name)
    if triggered:
        root, table = directory / name, re.sub(r"\W", "_", name).lower()
        storage = json.dumps(spark_url((root / DIRECTORY / name / "storage").absolute()), ensure_ascii=False)
        files = {
            root / SPECS[0]: _template("spark-pipeline.yml", name=name, storage=storage),
            root / "transformations" / f"{table}.py": _template("transformations.py", name=name, table=table),
        }
    else:
        files = {directory / f"{name}.py": _template("pipeline.py", name=name)}
    if existing := [path for path in files if path.exists()]:
        raise PipelineError(f"{existing[0]} exists already: choose another name, or --directory")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = [str(path) for path in files]
    run = directory / name if triggered else made[0]
    session.show(
        {"files": made},
        f"created {' and '.join(made)}, which shows how to write records for it: headrace pipeline run {run}",
    )


def _template(file: str, **values: str) -> str:
    """Return the file templates/FILE.txt with a value for each {name} in it."""
    text = (Path(__file__).parent / "templates" / f"{file}.txt").read_text("utf-8")
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
