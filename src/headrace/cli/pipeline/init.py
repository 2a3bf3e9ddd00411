"""`headrace pipeline init`: create a small pipeline that runs."""

import json
import re
from pathlib import Path

import click

from headrace.cli.pipeline.commands import SPECS
from headrace.cli.support.session import Session, options
from headrace.pipeline.declaration import check_name
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.state import DIRECTORY
from headrace.pipeline.storage.files import local_directory, spark_url


@click.command()
@click.argument("name")
@click.option(
    "--triggered", is_flag=True, help="A project of Spark Declarative Pipelines: each run ends by itself."
)
@click.option(
    "--directory",
    "location",
    metavar="DIR",
    type=click.Path(file_okay=False),
    default=".",
    show_default=False,
    help="Where to create it. Default: the current directory.",
)
@options
def init(session: Session, name: str, location: str, *, triggered: bool) -> None:
    """Create a pipeline to start from:  headrace pipeline init orders

    It runs as it is; its first lines show how to write records for it. Existing files are not overwritten.
    """
    check_name("a pipeline", name)
    directory = local_directory(location, "a pipeline")
    if not location.lower().startswith("file:"):
        directory = Path(location)  # which may be relative, as the user has typed it
    if triggered:
        made, table = directory / name, re.sub(r"\W", "_", name).lower()
        storage = spark_url((made / DIRECTORY / name / "storage").absolute())
        values = {"name": name, "table": table, "storage": json.dumps(storage, ensure_ascii=False)}
        templates = {
            made / SPECS[0]: "spark-pipeline.yml",
            made / "transformations" / f"{table}.py": "transformations.py",
        }
    else:
        made, values = directory / f"{name}.py", {"name": name}
        templates = {made: "pipeline.py"}
    if existing := [path for path in templates if path.exists()]:
        raise PipelineError(f"{existing[0]} exists already: choose another name, or --directory")
    for path, template in templates.items():
        text = (Path(__file__).parent / "templates" / f"{template}.txt").read_text("utf-8")
        for placeholder, value in values.items():
            text = text.replace(f"{{{placeholder}}}", value)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    files = [str(path) for path in templates]
    created = f"created {' and '.join(files)}, which shows how to write records for it"
    session.show({"files": files}, f"{created}: headrace pipeline run {made}")
