"""Files in memory whose users take turns, one call at a time, in an order that a seed determines."""

import random
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from headrace.pipeline.storage.versions import File


class InterleavedFiles:
    def __init__(self, seed: int = 0) -> None:
        self._content: dict[str, bytes] = {}
        self._random = random.Random(seed)
        self._changed = threading.Condition()
        self._waiting: set[int] = set()
        self._running = 0
        self._turn: int | None = None
        self._errors: list[BaseException] = []

    # -- the files -----------------------------------------------------------------------------

    def names(self, path: str) -> Iterable[str]:
        self._wait_for_turn()
        prefix = f"{path}/" if path else ""
        return {
            each.removeprefix(prefix).partition("/")[0] for each in self._content if each.startswith(prefix)
        }

    def read(self, path: str) -> File | None:
        self._wait_for_turn()
        content = self._content.get(path)
        return None if content is None else File(content, datetime.now(UTC))

    def create(self, path: str, content: bytes) -> bool:
        self._wait_for_turn()
        if path in self._content:
            return False
        self._content[path] = content
        return True

    def delete(self, path: str) -> None:
        self._wait_for_turn()
        for each in [each for each in self._content if each == path or each.startswith(f"{path}/")]:
            del self._content[each]

    # -- the turns -----------------------------------------------------------------------------

    def run(self, users: Sequence[Callable[[], None]]) -> None:
        """Run the functions in threads, and let one of them at a time make a call; raise what one raises."""
        self._running = len(users)
        last: int | None = None
        threads = [
            threading.Thread(target=self._run_one, args=(user,), name=str(number))
            for number, user in enumerate(users)
        ]
        for thread in threads:
            thread.start()
        with self._changed:
            while self._running:
                self._changed.wait_for(lambda: self._turn is None and len(self._waiting) == self._running)
                if self._running:
                    self._turn = last = self._next(last)
                    self._changed.notify_all()
        for thread in threads:
            thread.join()
        if self._errors:
            raise self._errors[0]

    def _next(self, last: int | None) -> int:
        """Return who is next: mostly the last one, so that others are far behind when they go on."""
        if last in self._waiting and self._random.random() < 0.9:
            return last
        return self._random.choice(sorted(self._waiting))

    def _run_one(self, user: Callable[[], None]) -> None:
        try:
            user()
        except BaseException as error:  # noqa: BLE001  raised by `run`
            self._errors.append(error)
        with self._changed:
            self._running -= 1
            self._changed.notify_all()

    def _wait_for_turn(self) -> None:
        if not self._running:
            return
        me = int(threading.current_thread().name)
        with self._changed:
            self._waiting.add(me)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._turn == me)
            self._waiting.discard(me)
            self._turn = None
            self._changed.notify_all()
