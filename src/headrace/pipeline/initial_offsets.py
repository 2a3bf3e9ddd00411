"""The offsets where a source's queries start, stored as numbers because "latest" changes with time.

A record that cannot be decoded is skipped by one query and written by another one, that of the dead letters.
If the second query started a moment later, the records in between would be lost. So the offsets are looked up
once for all queries of a source, and stored until every query has planned its first batch, also over
restarts.
"""

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from headrace.pipeline.state import PipelineState
from headrace.spark.options import SourceOptions
from headrace.spark.planner import Planner
from headrace.spark.position import Position


def with_initial_offsets(state: PipelineState, source: str, options: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a source, with offsets if its start depends on the time."""
    parsed = SourceOptions.of(options, streaming=True)
    if parsed.initial is not None or not parsed.starting.depends_on_now:
        return dict(options)
    offsets = _stored(state, source, options)
    if offsets is None:
        with closing(Planner(parsed)) as planner:
            offsets = planner.initial().to_json()
        state.store_initial_offsets(source, {"options": _comparable(options), "offsets": offsets})
    return {**options, "initialOffsets": json.dumps(offsets)}


def stored_position(state: PipelineState, source: str, options: Mapping[str, str]) -> Position | None:
    """Return where the source starts, if that is stored and a query has not started yet."""
    offsets = _stored(state, source, options)
    return None if offsets is None else Position.from_json(offsets)


def _stored(state: PipelineState, source: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
    """Return the stored offsets; None also if the source had other options then."""
    found = state.initial_offsets.get(source, {})
    return found.get("offsets") if found.get("options") == _comparable(options) else None


def _comparable(options: Mapping[str, str]) -> dict[str, str]:
    """Return the options that determine the start, without client settings such as passwords."""
    return {name: value for name, value in options.items() if not name.lower().startswith("kafka.")}
