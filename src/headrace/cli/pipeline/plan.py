"""`headrace pipeline check` and `explain`: whether a pipeline would run, and what it would do."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline import commands
from headrace.cli.pipeline.state import when
from headrace.cli.support.output import count, together
from headrace.cli.support.session import Session, options
from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from headrace.pipeline.plan import ExpectationPlan, Plan, QueryPlan, SourcePlan

_WORST: Final = 3  # partitions that are named


@click.command()
@commands.file_argument
@commands.state_option
@options
def check(session: Session, path: Path, root: Path | str | None) -> None:
    """Check whether a pipeline would run:  headrace pipeline check trucks.py

    Its source topics have to exist, the columns of every step and sink have to match, and its sinks have to
    be reachable. Nothing is created and nothing runs. Each problem is a line; the exit status is 1 if there
    is one.
    """
    if (spec := commands.project(path)) is not None:
        from headrace.cli.pipeline.triggered import run_project  # noqa: PLC0415

        run_project(session, spec, root, master="local[1]", settings={}, dry_run=True)
        says = "Spark has found nothing wrong"
        result = [{"good": True, "what": str(path), "says": says}]
        session.show(result, f"{click.style('ok', fg='green')}  {path}: {says}")
        return
    opened = commands.open_pipeline(session, path, root)
    from headrace.pipeline.checker import Checker  # noqa: PLC0415  imports Spark

    spark = commands.inspection_session(opened)
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
    if wrong := sum(not finding.good for finding in findings):
        raise PipelineError(f"{path}: {count(wrong, 'problem')}")


@click.command()
@commands.file_argument
@commands.state_option
@options
def explain(session: Session, path: Path, root: Path | str | None) -> None:
    """Show what a pipeline would do:  headrace pipeline explain trucks.py

    Its sources and their lag, where bad rows go, its steps and sinks, where it continues, and what it will
    create. Spark is not started.
    """
    from headrace.pipeline.plan import plan  # noqa: PLC0415

    opened = commands.open_pipeline(session, path, root)
    planned = plan(opened.pipeline, opened.bootstrap, opened.state)
    session.show(planned, lambda: together("\n".join(part) for part in _parts(planned)))


def _parts(plan: "Plan") -> Iterator[list[str]]:
    yield [f"pipeline {plan.pipeline} on {plan.bootstrap}, state in {plan.state}"]
    for source in plan.sources:
        yield list(_source(source))
    for view, inputs in plan.views.items():
        yield [f"view {view}, from {', '.join(inputs)}"]
    if plan.expectations:
        yield list(map(_expectation, plan.expectations))
    for query in plan.queries:
        yield list(_query(query, plan))
    new = [
        f"topic {each.name}: {count(each.partitions, 'partition')}, {count(each.replicas, 'replica')}"
        for each in plan.new_topics
    ]
    new += [each.creates for each in plan.queries if each.creates]
    yield ["will be created:", *(f"  {each}" for each in new)] if new else ["nothing has to be created"]


def _source(source: "SourcePlan") -> Iterator[str]:
    yield (
        f"source {source.name}: topic {', '.join(source.topics)}, {count(source.partitions, 'partition')}, "
        f"{count(source.records, 'record')}"
    )
    bad = {"drop": "are dropped", "fail": "end the pipeline"}
    goes = f"go to topic {source.dead_letters}" if source.dead_letters else bad.get(source.bad_rows)
    bad_rows = f"; bad rows {goes}" if goes and source.decode != "bytes" else ""
    yield f"  decoded as {source.decode}{bad_rows}"


def _expectation(expectation: "ExpectationPlan") -> str:
    broken = {"keep": "are kept", "drop": "are dropped", "fail": "end the pipeline"}
    otherwise = broken.get(expectation.otherwise, f"go to {expectation.quarantine}")
    where = f"expectation on {expectation.step}, {expectation.name}"
    return f"{where}: {expectation.condition}; other rows {otherwise}"


def _query(query: "QueryPlan", plan: "Plan") -> Iterator[str]:
    yield f"query {query.name}: {', '.join(query.inputs)} -> {query.target}"
    yield f"  mode {query.mode}, every {query.every}"
    if query.shared is not None:
        unless = "" if query.last_batch is not None else ", unless Spark keeps state for it"
        yield f"  shares query {query.shared} with {', '.join(query.shares_with) or 'no other'}{unless}"
    if query.last_batch is None:
        since = f"with records since {when(plan.since_ms)}" if plan.since_ms is not None else "anew"
        yield f"  starts {since}: {count(query.lag, 'record')} to read"
    else:
        yield f"  continues after batch {query.last_batch}: lag {count(query.lag, 'record')}"
    if query.repeats:
        yield "  a batch was started and not finished: it is repeated"
    worst = sorted(query.lags.items(), key=lambda each: (-each[1], each[0]))[:_WORST]
    if query.lag and len(query.lags) > 1:
        yield f"  most of them in {', '.join(f'{partition} ({lag:,})' for partition, lag in worst if lag)}"
    yield f"  checkpoint {query.checkpoint}"
