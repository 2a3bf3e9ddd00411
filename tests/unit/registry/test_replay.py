"""Whatever happens to a registry, its topic tells: also compacted, to whoever reads it from the beginning."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.registry.formats import Level
from headrace.registry.records import Mode, SchemaKey
from headrace.registry.refusals import Refusal
from headrace.registry.state import Show
from unit.registry.registries import ARegistry, record_type

SUBJECTS = ["s", "t", ":.a:s"]
TEXTS = [record_type("a"), record_type("a", "b?"), record_type("c?"), record_type("d")]

steps = st.one_of(
    st.tuples(st.just("register"), st.sampled_from(SUBJECTS), st.sampled_from(TEXTS)),
    st.tuples(st.just("delete"), st.sampled_from(SUBJECTS), st.sampled_from([None, 1, 2, -1]), st.booleans()),
    st.tuples(st.just("configure"), st.sampled_from([None, *SUBJECTS]), st.sampled_from(list(Level))),
    st.tuples(st.just("unconfigure"), st.sampled_from([None, *SUBJECTS])),
    st.tuples(st.just("enter"), st.sampled_from([None, "s"]), st.sampled_from(list(Mode))),
    st.tuples(st.just("leave"), st.sampled_from([None, "s"])),
)


def play(registry: ARegistry, step: tuple[object, ...]) -> None:
    name, *arguments = step
    try:
        if name == "delete":
            registry.delete(*arguments[:2], permanent=arguments[2])  # type: ignore[arg-type]
        else:
            getattr(registry, str(name))(*arguments)
    except Refusal:
        return  # which has changed nothing, as is shown by the comparison


def seen(registry: ARegistry) -> object:
    state = registry.state
    values = [each for subject in state.subjects(show=Show.ALL) for each in state.versions(subject, Show.ALL)]
    return (
        values,
        [state.versions_with_id(each.id, context) for each in values for context in state.contexts()],
        [state.id_of(each) for each in values],
        [state.referrers(SchemaKey(each.subject, each.version), Show.ALL) for each in values],
        state.contexts(),
        [state.max_id(context) for context in state.contexts()],
        [(state.settings.config(each), state.settings.mode(each)) for each in [None, *SUBJECTS]],
    )


@given(st.lists(steps, max_size=25))
def test_a_replay_knows_what_was_known(history: list[tuple[object, ...]]) -> None:
    registry = ARegistry()
    for step in history:
        play(registry, step)

    assert seen(registry.replayed()) == seen(registry)
    assert seen(registry.compacted()) == seen(registry)


@given(st.lists(steps, max_size=25))
def test_an_id_means_one_schema_and_versions_only_grow(history: list[tuple[object, ...]]) -> None:
    registry = ARegistry()
    meant: dict[tuple[str, int], str] = {}
    for step in history:
        play(registry, step)
        for subject in registry.state.subjects(show=Show.ALL):
            for each in registry.state.versions(subject, Show.ALL):
                context = ".a" if subject.startswith(":.a:") else "."
                assert meant.setdefault((context, each.id), each.schema.text) == each.schema.text
