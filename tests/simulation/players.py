"""Plays seeds, many at a time, each group of them in a process of its own.

A story leaves processes behind that were killed in the middle of something. They are kept as they are: were
they freed, Python would let them clean up, in the midst of another story. So nothing is freed, and the
processes that play are short-lived.
"""

import gc
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

from headrace.broker.requests.dispatch import load_handlers
from simulation.story import Story
from simulation.world import Crash, Violation

GROUP = 20  # seeds that one process plays
_TOLD = 60  # events, when something is wrong


class Outcome(NamedTuple):
    """What became of one seed."""

    seed: int
    steps: int
    problem: str | None = None
    trace: Sequence[str] = ()
    is_violation: bool = False  # of what must hold; otherwise a program has fallen over


Rules = Callable[[], AbstractContextManager[object]]
"""What is in force while a story is played; all as it is shipped, unless a test breaks a rule."""

_kept: list[Story] = []


def play(seed: int, *, traced: bool = False, rules: Rules = nullcontext) -> Outcome:
    """Play one seed, in this process."""
    story = Story(seed, traced=traced)
    _kept.append(story)
    try:
        with rules():
            story.play()
    except Exception as error:  # noqa: BLE001  a Violation, or a bug that ended in any other way
        problem = str(error) if isinstance(error, Violation) else repr(error)
        is_violation = isinstance(error, Violation) and not isinstance(error, Crash)
        return Outcome(seed, story.world.steps, problem, story.world.trace, is_violation)
    return Outcome(seed, story.world.steps, None, story.world.trace)


def play_all(
    seeds: Sequence[int], *, jobs: int, rules: Rules = nullcontext, one_will_do: bool = False
) -> Iterator[Outcome]:
    """Play seeds in `jobs` processes at a time; outcomes come as they are known, in the order of the seeds.

    If one that goes wrong will do, a process ends with the first.
    """
    load_handlers()
    warnings.filterwarnings("ignore", "coroutine .* was never awaited")  # what was cancelled before it began
    gc.collect()
    gc.freeze()
    waiting = [seeds[first : first + GROUP] for first in range(0, len(seeds), GROUP)]
    running: dict[int, int] = {}  # process id to the end of its pipe
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                process_id, pipe = _fork(waiting.pop(0), rules, one_will_do=one_will_do)
                running[process_id] = pipe
            process_id = next(iter(running))  # the oldest
            with os.fdopen(running[process_id], "rb") as file:
                outcomes = pickle.load(file)
            os.waitpid(process_id, 0)
            del running[process_id]
            yield from outcomes
    finally:
        for process_id, pipe in running.items():
            os.kill(process_id, signal.SIGKILL)
            os.close(pipe)
            os.waitpid(process_id, 0)


def _fork(seeds: Sequence[int], rules: Rules, *, one_will_do: bool) -> tuple[int, int]:
    reading, writing = os.pipe()
    process_id = os.fork()
    if process_id:
        os.close(writing)
        return process_id, reading
    try:
        gc.disable()
        with os.fdopen(writing, "wb") as file:
            pickle.dump(list(_play_group(seeds, rules, one_will_do=one_will_do)), file)
    finally:
        os._exit(0)


def _play_group(seeds: Sequence[int], rules: Rules, *, one_will_do: bool) -> Iterator[Outcome]:
    for seed in seeds:
        outcome = _play_and_tell(seed, rules)
        yield outcome
        if one_will_do and outcome.is_violation:
            return


def _play_and_tell(seed: int, rules: Rules) -> Outcome:
    """Play a seed; if something is wrong, play it again and say how it came about."""
    outcome = play(seed, rules=rules)
    if outcome.problem is None:
        return Outcome(seed, outcome.steps)
    told = play(seed, traced=True, rules=rules)
    if told.problem != outcome.problem:
        return Outcome(seed, told.steps, f"{outcome.problem}; played again: {told.problem}")
    return told._replace(trace=told.trace[-_TOLD:])
