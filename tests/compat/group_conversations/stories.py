"""The list of all conversations."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from compat.group_conversations.talk import Talk

ALL_LEVELS: Final = range(11)
CONSUMER_LEVELS: Final = range(9, 11)
"""Levels at which the new protocol is spoken."""

Story = Callable[[Talk], None]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A story, and the levels of versions at which it is told."""

    story: Story
    levels: tuple[int, ...]


CONVERSATIONS: Final[dict[str, Conversation]] = {}


def conversation(levels: Iterable[int] = ALL_LEVELS, name: str = "") -> Callable[[Story], Story]:
    """Put a story on the list, under its own name or another."""

    def put(story: Story) -> Story:
        called = name or story.__name__
        assert called not in CONVERSATIONS, f"there are two stories called {called}"
        CONVERSATIONS[called] = Conversation(story, tuple(levels))
        return story

    return put


def held_with(bootstrap: str, topics: dict[str, bytes], name: str, level: int, *, run: int) -> list[str]:
    """What was said when a conversation was held with a broker.

    `run` differs each time that it is held with one broker, which may still have members of the time before.
    """
    with Talk(bootstrap, name, level, topics, run=run) as talk:
        CONVERSATIONS[name].story(talk)
        return talk.transcript()
