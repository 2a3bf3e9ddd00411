"""Warnings of a member, for the terminal of the process that started it."""

import logging

from headrace.cli.machine.member import say


class ToParent(logging.Handler):
    """Says what is logged to the parent as well."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line, whatever the record has."""
        say(f"{record.levelname} {record.getMessage()}")


def pass_warnings_on() -> None:
    """Have the parent show warnings where somebody may be looking; the file has everything."""
    logging.getLogger().addHandler(ToParent(logging.WARNING))
