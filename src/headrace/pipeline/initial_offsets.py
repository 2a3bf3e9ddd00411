"""Where the sources of a pipeline begin, as offsets: "latest" is another place whenever somebody asks.

A row that cannot be decoded is left out by one query and taken by another, the one for dead letters. Were the
second to begin a moment later, nobody would have the rows between. So offsets are looked up once for all
queries of a source, and kept until every query has planned its first batch, over restarts.
"""

import json
from collections.abc import Mapping
from typing import Any

from headrace.pipeline.state import State
from headrace.spark.options import SourceOptions
from headrace.spark.planning import Planner
from headrace.spark.position import Position


def pinned(state: State, source: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of a source, with offsets if where they begin depends on the moment."""
    parsed = SourceOptions.of(options, streaming=True)
    if parsed.initial is not None or not parsed.starting.depends_on_now:
        return dict(options)
    offsets = _kept(state, source, options)
    if offsets is None:
        planner = Planner(parsed)
        try:
            offsets = planner.initial().to_json()
        finally:
            planner.close()
        state.keep_initial_offsets(source, {"options": _open(options), "offsets": offsets})
    return {**options, "initialOffsets": json.dumps(offsets)}


def kept_position(state: State, source: str, options: Mapping[str, str]) -> Position | None:
    """Where the source begins, if that was looked up already and a query has still to begin there."""
    offsets = _kept(state, source, options)
    return None if offsets is None else Position.from_json(offsets)


def _kept(state: State, source: str, options: Mapping[str, str]) -> Mapping[str, Any] | None:
    """None also if the source was declared otherwise then."""
    found = state.initial_offsets.get(source, {})
    return found.get("offsets") if found.get("options") == _open(options) else None


def _open(options: Mapping[str, str]) -> dict[str, str]:
    """What is read, and from where on; no passwords."""
    return {name: value for name, value in options.items() if not name.lower().startswith("kafka.")}
