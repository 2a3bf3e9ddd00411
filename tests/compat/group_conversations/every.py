"""All conversations there are, at all their levels; those at levels that are not in `QUICK` are `long`."""

import importlib
from pathlib import Path
from typing import Final

import pytest

from compat.group_conversations.stories import CONVERSATIONS

QUICK: Final = (0, 5, 10)
"""The oldest versions, the last ones before flexible versions that know static members, and the newest.

A conversation is also held at its lowest level in every run.
"""

for _file in sorted(Path(__file__).parent.glob("about_*.py")):
    importlib.import_module(f"compat.group_conversations.{_file.stem}")

CASES: Final = [
    pytest.param(name, level, marks=[] if level in (*QUICK, min(conversation.levels)) else pytest.mark.long)
    for name, conversation in CONVERSATIONS.items()
    for level in conversation.levels
]
