"""Hints for users of other clients, and notes about a second error."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from headrace.client.errors import ClientError


class Hint:
    """An attribute that other clients have: it raises an error with the name here.

    It is a class attribute: with `__getattr__` Python looks up all names more slowly, and `send` would take
    half as long again.
    """

    def __init__(self, here: str) -> None:
        self._here = here

    def __set_name__(self, _owner: type, name: str) -> None:
        self._name = name

    def __get__(self, _instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no `{self._name}`: it is `{self._here}` here")


@contextmanager
def note_failure(error: BaseException | None) -> Iterator[None]:
    """Add a ClientError that the block raises as a note to `error`, which ended the client's `with` block."""
    try:
        yield
    except ClientError as failure:
        if error is None:
            raise
        error.add_note(f"and besides: {failure}")
