"""Pairing the schemas of one allOf, anyOf or oneOf with those of another."""

from collections.abc import Callable
from itertools import chain


def all_matched(few: int, many: int, fits: Callable[[int, int], bool]) -> bool:
    """Whether each of `few` gets one of `many` that it fits, no two the same.

    Neighbours are tried first, so that a list to which something was appended takes one step each.
    """
    taken: dict[int, int] = {}  # one of many: by which of few
    return all(_place(one, many, fits, taken) for one in range(few))


def _place(first: int, many: int, fits: Callable[[int, int], bool], taken: dict[int, int]) -> bool:
    """Find a place for `first`, moving others along if need be, by the shortest chain of moves."""
    came_by: dict[int, int] = {}  # one of many: who would move there
    waiting = [first]
    for one in waiting:  # grows while we go
        for place in chain([one], range(many)):
            if place in came_by or not fits(one, place):
                continue
            came_by[place] = one
            if place not in taken:
                _move(first, place, came_by, taken)
                return True
            waiting.append(taken[place])
    return False


def _move(first: int, place: int, came_by: dict[int, int], taken: dict[int, int]) -> None:
    places = {one: place for place, one in taken.items()}
    while True:
        one = came_by[place]
        taken[place] = one
        if one == first:
            return
        place = places[one]
