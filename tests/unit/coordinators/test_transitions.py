from enum import Enum

import pytest

from headrace.coordinators.decision import check_transition


class Light(Enum):
    RED = 1
    GREEN = 2


LEGAL = {Light.RED: {Light.GREEN}, Light.GREEN: {Light.RED}}


def test_a_listed_transition_is_legal() -> None:
    check_transition(LEGAL, Light.RED, Light.GREEN, "the light")


def test_any_other_transition_fails_with_both_states() -> None:
    with pytest.raises(AssertionError, match="the light cannot go from RED to RED"):
        check_transition(LEGAL, Light.RED, Light.RED, "the light")
