"""A decision that needs a comparison says which, and is made once that is known."""

import pytest

from headrace.registry.comparison import NotCompared, Verdicts
from headrace.registry.formats import Level
from headrace.registry.refusals import Incompatible
from unit.registry.registries import ARegistry, record_type

ONE, TWO, THREE = record_type("a"), record_type("a", "b?"), record_type("a", "c?")


def missing(registry: ARegistry, text: str, known: Verdicts) -> NotCompared:
    with registry.library.comparisons.only(known), pytest.raises(NotCompared) as missed:
        registry.register("s", text)
    return missed.value


def test_nothing_is_compared_while_it_is_decided() -> None:
    registry = ARegistry()
    registry.register("s", ONE)

    comparison = missing(registry, TWO, {}).comparison

    assert [version for version, _ in comparison.olds] == [1]
    assert len(registry.state.versions("s")) == 1


def test_a_verdict_that_is_known_decides() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    comparison = missing(registry, TWO, {}).comparison

    with registry.library.comparisons.only({comparison: ["no"]}), pytest.raises(Incompatible):
        registry.register("s", TWO)
    with registry.library.comparisons.only({comparison: comparison.messages()}):
        assert registry.register("s", TWO).version == 2


def test_a_verdict_does_not_hold_for_another_version() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    comparison = missing(registry, TWO, {}).comparison
    registry.register("s", THREE)

    assert missing(registry, TWO, {comparison: []}).comparison.olds[0][0] == 2


def test_a_verdict_does_not_hold_for_another_level() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    comparison = missing(registry, TWO, {}).comparison
    registry.configure("s", Level.FULL)

    assert missing(registry, TWO, {comparison: []}).comparison.level is Level.FULL


def test_what_has_nothing_before_it_is_compared_with_nothing() -> None:
    registry = ARegistry()

    with registry.library.comparisons.only({}):
        assert registry.register("s", ONE).version == 1
