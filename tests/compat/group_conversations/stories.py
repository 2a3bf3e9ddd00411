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

    @property
    def name(self) -> str:
        return self.story.__name__


CONVERSATIONS: Final[dict[str, Conversation]] = {}


def conversation(levels: Iterable[int] = ALL_LEVELS) -> Callable[[Story], Story]:
    """Put a story on the list."""

    def put(story: Story) -> Story:
        assert story.__name__ not in CONVERSATIONS, f"there are two stories called {story.__name__}"
        CONVERSATIONS[story.__name__] = Conversation(story, tuple(levels))
        return story

    return put


def held_with(bootstrap: str, topics: dict[str, bytes], name: str, level: int) -> list[str]:
    """What was said when a conversation was held with a broker."""
    with Talk(bootstrap, name, level, topics) as talk:
        CONVERSATIONS[name].story(talk)
        return talk.transcript()
