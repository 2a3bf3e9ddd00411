"""Standard streams that were closed before we were started, as `headrace … >&-` does."""

import os
import sys
from typing import Final

_MODES: Final = {"stdin": "r", "stdout": "w", "stderr": "w"}


def open_closed() -> None:
    """Have nothing to read, and nobody who reads, where there is no stream: Python has None there."""
    for name, mode in _MODES.items():
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123  until the end
