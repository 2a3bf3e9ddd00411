"""Hides installed packages from a Python process and its children: those named in HIDDEN_PACKAGES."""

import os
import sys
from collections.abc import Sequence

_HIDDEN = frozenset(os.environ["HIDDEN_PACKAGES"].split(","))


class _Hidden:
    @staticmethod
    def find_spec(name: str, _path: Sequence[str] | None = None, _target: object = None) -> None:
        if name.partition(".")[0] in _HIDDEN:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, _Hidden)
