"""How far a long measurement has come: one line on a terminal, nothing where nobody watches."""

import sys


def progress(text: str = "") -> None:
    """Show `text` in place of what was shown before; nothing clears the line."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()
