"""All conversations there are, at all their levels."""

import importlib
from pathlib import Path
from typing import Final

from compat.group_conversations.stories import CONVERSATIONS

for _file in sorted(Path(__file__).parent.glob("about_*.py")):
    importlib.import_module(f"compat.group_conversations.{_file.stem}")

CASES: Final = [
    (name, level) for name, conversation in CONVERSATIONS.items() for level in conversation.levels
]
