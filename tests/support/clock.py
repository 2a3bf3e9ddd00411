"""A clock that stands still until a test moves it."""


class SettableClock:
    """A function that returns milliseconds:  open_log(..., now_ms=SettableClock(1_000))."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms

    def advance(self, milliseconds: int) -> None:
        self.now_ms += milliseconds
