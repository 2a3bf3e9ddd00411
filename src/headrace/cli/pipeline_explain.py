"""`headrace pipeline explain`: what it is about to do."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from headrace.cli.pipeline_files import Opened, open_pipeline, quiet_session, state_option
from headrace.cli.pipeline_tables import when
from headrace.cli.session import Session, options, together
from headrace.cli.texts import count

if TYPE_CHECKING:
    from headrace.pipeline.plan import Plan, QueryPlan, SourcePlan

_WORST: Final = 3  # partitions that are named


@click.command()
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@state_option
@click.option("--spark", "spark_too", is_flag=True, help="Also print Spark's own plan of every query.")
@options
@click.pass_obj
def explain(session: Session, path: Path, root: Path | None, *, spark_too: bool) -> None:
    """Show what a pipeline is about to do:  headrace pipeline explain trucks.py

    What it reads and how far behind it is, where bad rows go, its steps and sinks, where it goes on, and
    what will be created. Spark is started only for --spark.
    """
    if spark_too and session.as_json:
        raise click.UsageError("--spark prints what Spark says, for people: leave --json out.")
    from headrace.pipeline.plan import plan  # noqa: PLC0415

    opened = open_pipeline(session, path, root)
    found = plan(opened.pipeline, opened.bootstrap, opened.state)
    session.show(found, lambda: together("\n".join(part) for part in _parts(found)))
    if spark_too:
        _print_spark(opened)


def _parts(plan: "Plan") -> Iterator[list[str]]:
    yield [f"pipeline {plan.pipeline} on {plan.bootstrap}, state in {plan.state}"]
    for source in plan.sources:
        yield list(_source(source))
    for view, inputs in plan.views.items():
        yield [f"view {view}, from {', '.join(inputs)}"]
    for query in plan.queries:
        yield list(_query(query, plan))
    new = [
        f"topic {each.name}: {_partitions(each.partitions)}, {count(each.replicas, 'replica')}"
        for each in plan.new_topics
    ]
    new += [each.creates for each in plan.queries if each.creates]
    yield ["will be created:", *(f"  {each}" for each in new)] if new else ["nothing has to be created"]


def _source(source: "SourcePlan") -> Iterator[str]:
    yield (
        f"source {source.name}: topic {', '.join(source.topics)}, {_partitions(source.partitions)}, "
        f"{count(source.records, 'record')}"
    )
    bad = {"drop": "are left out", "fail": "end the pipeline"}
    goes = f"go to topic {source.dead_letters}" if source.dead_letters else bad.get(source.bad_rows)
    yield f"  decoded as {source.decode}" + (
        f"; bad rows {goes}" if goes and source.decode != "bytes" else ""
    )


def _query(query: "QueryPlan", plan: "Plan") -> Iterator[str]:
    yield f"query {query.name}: {', '.join(query.inputs)} -> {query.target}"
    yield f"  mode {query.mode}, every {query.every}"
    if query.last_batch is None:
        since = f"with records since {when(plan.since_ms)}" if plan.since_ms is not None else "anew"
        yield f"  begins {since}: {count(query.lag, 'record')} to read"
    else:
        yield f"  goes on after batch {query.last_batch}: lag {count(query.lag, 'record')}"
    if query.repeats:
        yield "  a batch was begun and not finished: it is done again"
    worst = sorted(query.lags.items(), key=lambda each: (-each[1], each[0]))[:_WORST]
    if query.lag and len(query.lags) > 1:
        yield f"  most of them in {', '.join(f'{place} ({lag:,})' for place, lag in worst if lag)}"
    yield f"  checkpoint {query.checkpoint}"


def _partitions(number: int) -> str:
    return count(number, "partition")


def _print_spark(opened: Opened) -> None:
    from headrace.pipeline.builder import Builder  # noqa: PLC0415  it is Spark's from here on

    spark = quiet_session(opened)
    try:
        for query in Builder(
            spark, opened.pipeline, opened.bootstrap, since_ms=opened.state.since_ms
        ).queries():
            click.echo(f"\nSpark's plan of {query.name}:")
            query.frame.explain(mode="formatted")
    finally:
        spark.stop()
