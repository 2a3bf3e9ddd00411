"""Where a source begins, told as offsets: "latest" is another place whenever somebody asks.

A row that cannot be decoded is left out by one query and taken by another, the one for dead letters. Were the
second to begin a moment later, nobody would have the rows between.
"""

import json
from collections.abc import Mapping

from headrace.spark.offsets import LATEST, to_json
from headrace.spark.options import SourceOptions
from headrace.spark.planning import Planner


def pinned(options: Mapping[str, str]) -> dict[str, str]:
    """The options with offsets in place of what depends on the moment; a pattern may match more by then."""
    parsed = SourceOptions.of(options, streaming=True)
    moves = parsed.starting.timestamp is not None or parsed.starting.timestamps
    if parsed.selection.pattern is not None or not (moves or parsed.starting.otherwise == LATEST):
        return dict(options)
    planner = Planner(parsed)
    try:
        offsets = planner.resolve(parsed.starting, planner.places())
    finally:
        planner.close()
    others = {name: value for name, value in options.items() if not name.lower().startswith("starting")}
    return {**others, "startingOffsets": json.dumps(to_json(offsets))}
