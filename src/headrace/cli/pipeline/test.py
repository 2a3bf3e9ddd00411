"""`headrace pipeline test`: run a pipeline on records from files, without a cluster, and show every step."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headrace.cli.pipeline.commands import OpenedPipeline, file_argument, inspection_session, open_pipeline
from headrace.cli.support.formats import from_json
from headrace.cli.support.output import Drawable, count, table, to_json, together
from headrace.cli.support.session import Session, options, pairs
from headrace.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from headrace.client.records.one_by_one import Record
    from headrace.pipeline.testing import Result, StepRows

_SHOWN: Final = 20  # rows of a step
_RECORD: Final = "_record"


@click.command()
@file_argument
@click.option(
    "--input",
    "inputs",
    metavar="SOURCE=FILE",
    multiple=True,
    required=True,
    help="The records of a source: each line of the file is the value of one.",
)
@click.option(
    "--records",
    is_flag=True,
    help="Lines are records with keys and headers, as `consume --json` prints them.",
)
@click.option(
    "--rows", "most", type=click.IntRange(1), default=_SHOWN, help="How many rows of a step to show."
)
@options
def test(session: Session, path: Path, inputs: Sequence[str], *, records: bool, most: int) -> None:
    """Run a pipeline on records from files:  headrace pipeline test trucks.py --input positions=rows.jsonl

    The rows of every source, view and sink are shown, with records that cannot be decoded and rows that break
    an expectation. No cluster is needed, and nothing is written. All records are one batch.
    """
    given = {name: _read(Path(file), records=records) for name, file in pairs(inputs, "--input").items()}
    opened = open_pipeline(session, path, None)
    spark = inspection_session(opened)
    try:
        from headrace.pipeline.testing import run_on  # noqa: PLC0415  imports Spark

        result = run_on(spark, opened.pipeline, given)
    finally:
        spark.stop()
    session.show(_as_json(result), lambda: together(_parts(opened, result, most)))


def _read(path: Path, *, records: bool) -> "list[bytes | Record]":
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise PipelineError(f"{path} cannot be read: {error.strerror}") from error
    if not records:
        return list(lines)
    return [from_json(line, number) for number, line in enumerate(lines, 1)]


def _as_json(result: "Result") -> dict[str, Any]:
    """Return the result with values that JSON has; others, such as times, are shown as text."""
    return {
        "steps": {name: _plain(step.rows) for name, step in result.steps.items()},
        "bad": {
            name: [{"value": _text(record.value), "reason": record.reason} for record in bad]
            for name, bad in result.bad.items()
        },
        "quarantined": _plain(result.quarantined),
        "broken": result.broken,
    }


def _parts(opened: OpenedPipeline, result: "Result", most: int) -> Iterator[Drawable]:
    pipeline = opened.pipeline
    for name in pipeline.sources:
        yield from _step(f"source {name}", result.steps[name], most)
        bad = result.bad[name]
        if bad:
            rows = [(_text(each.value), each.reason) for each in bad[:most]]
            yield f"source {name}: {count(len(bad), 'record')} cannot be decoded"
            yield table(("value", "reason"), rows)
    for name in pipeline.views:
        yield from _step(f"view {name}", result.steps[name], most)
    for name, sink in pipeline.sinks.items():
        yield from _step(f"sink {name}, to {sink.target.label}", result.steps[name], most)
    for name, found in result.quarantined.items():
        if found:
            yield f"quarantine of {name}: {count(len(found), 'row')}"
            yield _table(list(found[0]), found[:most])
    lines = [
        f"expectation {expectation.step}: {expectation.label}: broken by "
        f"{count(result.broken.get(expectation.step, {}).get(expectation.name, 0), 'row')}"
        for expectation in pipeline.expectations
    ]
    if lines:
        yield "\n".join(lines)


def _step(title: str, step: "StepRows", most: int) -> Iterator[Drawable]:
    shown = f", {most} of them shown" if len(step.rows) > most else ""
    yield f"{title}: {count(len(step.rows), 'row')}{shown}"
    if step.rows:
        yield _table([column for column in step.columns if column != _RECORD], step.rows[:most])


def _table(columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> Drawable:
    cells = [[_plain(row[column]) for column in columns] for row in rows]
    return table(
        columns, [[to_json(it) if isinstance(it, dict | list) else it for it in row] for row in cells]
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return _text(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")
