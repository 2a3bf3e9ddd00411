"""Asking whoever has the answer now: what has moved is found again, and what cannot be known is said."""

from collections.abc import Mapping

from headrace.client.wire.retry import Answers, Backoff, Known, Unanswered, ask_owners

Located = dict[str, str | Unanswered | Known[str]]


class Rounds(Backoff):
    """A number of retries without pauses."""

    def __init__(self, more: int) -> None:
        super().__init__(timeout_s=0)
        self.more = more

    def rest(self) -> bool:
        self.more -= 1
        return self.more >= 0


def test_keys_are_asked_about_where_they_are_all_at_once() -> None:
    asked: list[Mapping[str, list[str]]] = []

    def ask(by_broker: Mapping[str, list[str]]) -> dict[str, str | Unanswered]:
        asked.append(dict(by_broker))
        return {key: f"{key}@{broker}" for broker, keys in by_broker.items() for key in keys}

    found = ask_owners(
        "abc", locate=lambda keys: {key: "12"[key == "c"] for key in keys}, ask=ask, backoff=Rounds(0)
    )

    assert found == Answers({"a": "a@1", "b": "b@1", "c": "c@2"}, {})
    assert asked == [{"1": ["a", "b"], "2": ["c"]}]


def test_what_has_moved_is_located_again_and_only_that() -> None:
    located: list[list[str]] = []

    def locate(keys: list[str]) -> Located:
        located.append(keys)
        return dict.fromkeys(keys, "new")

    found = ask_owners(
        "ab",
        locate=locate,
        ask=lambda asked: {
            key: Unanswered("moved") if key == "a" and broker == "old" else broker
            for broker, keys in asked.items()
            for key in keys
        },
        backoff=Rounds(5),
        known={"a": "old", "b": "old", "z": "old"},
    )

    assert found == Answers({"a": "new", "b": "old"}, {})
    assert located == [["a"]]


def test_what_is_not_answered_in_time_is_missing_with_the_last_reason() -> None:
    reasons = iter(["first", "second", "third", "fourth"])
    found = ask_owners(
        "ab",
        locate=lambda keys: dict.fromkeys(keys, "1"),
        ask=lambda asked: {key: "yes" if key == "a" else Unanswered(next(reasons)) for key in asked["1"]},
        backoff=Rounds(2),
    )
    assert found == Answers({"a": "yes"}, {"b": Unanswered("third")})


def test_nobody_is_asked_for_what_is_given_and_nobody_waits_for_what_will_not_come_soon() -> None:
    patience = Rounds(9)
    where: Located = {"a": Known("gone"), "b": Unanswered("no leader", retriable=False)}
    found = ask_owners("ab", locate=lambda _keys: where, ask=nothing, backoff=patience)
    assert found == Answers({"a": "gone"}, {"b": Unanswered("no leader", retriable=False)})
    assert patience.more == 9


def test_no_keys_are_no_question() -> None:
    def never(_keys: object) -> Located:
        raise AssertionError

    no_keys: list[str] = []
    assert ask_owners(no_keys, locate=never, ask=nothing, backoff=Rounds(0)) == Answers({}, {})


def nothing(_asked: Mapping[str, list[str]]) -> dict[str, str | Unanswered]:
    return {}
