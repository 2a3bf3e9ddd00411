"""A decision that needs a comparison returns it, and is made once its result is known."""

import pytest

from headrace.registry.formats import Level, Schema, SchemaType
from headrace.registry.library import Comparison
from headrace.registry.records import Decision, SchemaValue
from headrace.registry.refusals import Incompatible
from headrace.registry.registration import SubmittedSchema, register
from unit.registry.registries import ARegistry, record_type

ONE, TWO, THREE = record_type("a"), record_type("a", "b?"), record_type("a", "c?")


def decide(registry: ARegistry, text: str) -> Decision[SchemaValue] | Comparison:
    submitted = SubmittedSchema(Schema(SchemaType.AVRO, text))
    return register(registry.state, registry.library, "s", submitted)


def needed(registry: ARegistry, text: str) -> Comparison:
    comparison = decide(registry, text)
    assert isinstance(comparison, Comparison)
    return comparison


def test_nothing_is_compared_while_it_is_decided() -> None:
    registry = ARegistry()
    registry.register("s", ONE)

    assert [version for version, _ in needed(registry, TWO).olds] == [1]
    assert len(registry.state.versions("s")) == 1


def test_a_verdict_that_is_known_decides() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    comparison = needed(registry, TWO)

    registry.library.verdicts[comparison] = ["no"]
    with pytest.raises(Incompatible):
        decide(registry, TWO)
    registry.library.verdicts[comparison] = comparison.messages()
    decision = decide(registry, TWO)
    assert isinstance(decision, Decision)
    assert decision.answer.version == 2


def test_a_verdict_does_not_hold_for_another_version() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.library.verdicts[needed(registry, TWO)] = []
    registry.register("s", THREE)

    assert needed(registry, TWO).olds[0][0] == 2


def test_a_verdict_does_not_hold_for_another_level() -> None:
    registry = ARegistry()
    registry.register("s", ONE)
    registry.library.verdicts[needed(registry, TWO)] = []
    registry.configure("s", Level.FULL)

    assert needed(registry, TWO).level is Level.FULL


def test_a_first_version_needs_no_comparison() -> None:
    assert isinstance(decide(ARegistry(), ONE), Decision)
