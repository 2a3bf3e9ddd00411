"""`headrace pipeline init`: create a small pipeline that runs."""

from pathlib import Path

import click

from headrace.cli.support.session import Session, options
from headrace.pipeline.declaration import check_name
from headrace.pipeline.errors import PipelineError


@click.command()
@click.argument("name")
@click.option(
    "--directory",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default=False,
    help="Where to create it. Default: the current directory.",
)
@options
def init(session: Session, name: str, directory: Path) -> None:
    """Create a pipeline to start from:  headrace pipeline init orders

    It runs as it is; its first lines show how to write records for it. An existing file is not overwritten.
    """
    check_name("a pipeline", name)
    path = directory / f"{name}.py"
    if path.exists():
        raise PipelineError(f"{path} exists already: choose another name, or --directory")
    template = (Path(__file__).parent / "templates" / "pipeline.py.txt").read_text("utf-8")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.replace("{name}", name))
    session.show(
        {"files": [str(path)]},
        f"created {path}, which shows how to write records for it: headrace pipeline run {path}",
    )
