"""`headrace pipeline init`: something to begin with, which runs."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import click

from headrace.cli.pipeline_files import SPECS, LocalDirectory
from headrace.cli.pipeline_texts import CONTINUOUS, SPECIFICATION, TRANSFORMATIONS
from headrace.cli.session import Session, options
from headrace.pipeline.declaration import check_name
from headrace.pipeline.errors import PipelineError
from headrace.pipeline.paths import spark_url
from headrace.pipeline.state import DIRECTORY


@click.command()
@click.argument("name")
@click.option("--triggered", is_flag=True, help="A Spark Declarative Pipelines project: each run ends.")
@click.option(
    "--directory",
    metavar="DIR",
    type=LocalDirectory("a pipeline"),
    default=Path(),
    help="Where to make it; here if not given.",
)
@options
@click.pass_obj
def init(session: Session, name: str, directory: Path, *, triggered: bool) -> None:
    """Make a pipeline to begin with:  headrace pipeline init orders

    It runs as it is, and says at its top how to feed it. Files that are there already are left alone.
    """
    check_name("a pipeline", name)
    files = (
        _project(name, directory) if triggered else {directory / f"{name}.py": CONTINUOUS.format(name=name)}
    )
    if there := [each for each in files if each.exists()]:
        raise PipelineError(f"{there[0]} is there already: choose another name, or --directory")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    made = [str(each) for each in files]
    run = directory / name if triggered else made[0]
    session.show(
        {"files": made},
        f"made {' and '.join(made)}, which says how to feed it: headrace pipeline run {run}",
    )


def _project(name: str, directory: Path) -> Mapping[Path, str]:
    root = directory / name
    storage = json.dumps(spark_url((root / DIRECTORY / name / "storage").absolute()), ensure_ascii=False)
    table = re.sub(r"\W", "_", name).lower()
    return {
        root / SPECS[0]: SPECIFICATION.format(name=name, storage=storage),
        root / "transformations" / f"{table}.py": TRANSFORMATIONS.format(name=name, table=table),
    }
