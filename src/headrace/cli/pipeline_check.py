"""`headrace pipeline check`: would it run?"""

from pathlib import Path

import click

from headrace.cli.pipeline_files import found, open_pipeline, project, quiet_session, state_option
from headrace.cli.session import Session, options
from headrace.cli.texts import count
from headrace.pipeline.errors import PipelineError


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@state_option
@options
@click.pass_obj
def check(session: Session, path: Path, root: Path | None) -> None:
    """Look whether a pipeline would run:  headrace pipeline check trucks.py

    The topics it reads have to be there, the columns of every step and sink have to fit, and sinks have to
    be within reach. Nothing is created and nothing runs. Every problem is a line; exit status 1 if there is
    one.
    """
    if project(found(path)) is not None:
        from headrace.cli.pipeline_triggered import check_project  # noqa: PLC0415

        check_project(session, found(path), root)
        return
    opened = open_pipeline(session, path, root)
    from headrace.pipeline.checker import Checker  # noqa: PLC0415  it is Spark's from here on

    spark = quiet_session(opened)
    try:
        findings = []
        for each in Checker(spark, opened.pipeline, opened.bootstrap, opened.state).findings():
            findings.append(each)
            if not session.as_json:
                mark = click.style("ok", fg="green") if each.good else click.style("wrong", fg="red")
                click.echo(f"{mark}  {each.what}: {each.says}")
        if session.as_json:
            session.show(findings, "")
    finally:
        spark.stop()
    if wrong := sum(not each.good for each in findings):
        raise PipelineError(f"{path}: {count(wrong, 'problem')}")
