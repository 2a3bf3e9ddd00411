"""Hides installed packages from a Python process and its children: those named in HIDDEN_PACKAGES."""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_HIDDEN = frozenset(os.environ["HIDDEN_PACKAGES"].split(","))


class _Hiding(PathFinder):
    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return None if name.partition(".")[0] in _HIDDEN else super().find_spec(name, path, target)


sys.meta_path[:] = [_Hiding if each is PathFinder else each for each in sys.meta_path]
