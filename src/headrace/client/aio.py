"""What the asyncio clients have in common: arguments, methods that run in a thread, and closing."""

import asyncio
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from functools import partial, wraps
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from headrace.client.errors import ClientError
from headrace.client.hints import note_failure

Answer = TypeVar("Answer")
Arguments = ParamSpec("Arguments")
Client = TypeVar("Client")


class AsyncFace(ABC, Generic[Client]):
    """The asyncio face of a client, which exists within `async with`."""

    _opened: Client | None = None
    _closing: Future[None] | None = None
    _close_failed = False  # whether the error of closing was raised

    @property
    def _client(self) -> Client:
        if self._opened is None:
            raise ClientError(f"not open yet: use it as `async with {type(self).__name__}(...) as it:`")
        return self._opened

    @abstractmethod
    async def close(self) -> None: ...

    async def _call(self, function: Callable[[], Answer]) -> Answer:
        """Return what `function` returns, called in a thread."""
        return await asyncio.to_thread(function)

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        with note_failure(error):
            await self.close()

    async def _closed(self, closing: Future[None]) -> None:
        """Wait until the client is closed, which a cancelled task does not prevent; raise its error once."""
        try:
            await asyncio.shield(asyncio.wrap_future(closing))
        except Exception:
            failed, self._close_failed = self._close_failed, True
            if not failed:
                raise


def takes_arguments_of(
    client: Callable[Arguments, Client],
) -> Callable[[Callable[[Any, partial[Client]], None]], Callable[Concatenate[Any, Arguments], None]]:
    """Return a decorator for `__init__` of an asyncio face, which then takes the arguments of `client`.

    The decorated function gets a partial of `client` with these arguments.
    """

    def decorated(
        init: Callable[[Any, "partial[Client]"], None],
    ) -> Callable[Concatenate[Any, Arguments], None]:
        def __init__(self: object, /, *arguments: Arguments.args, **named: Arguments.kwargs) -> None:  # noqa: N807
            init(self, partial(client, *arguments, **named))

        __init__.__doc__ = client.__init__.__doc__
        __init__.__signature__ = inspect.signature(client.__init__)  # type: ignore[attr-defined]
        return __init__

    return decorated


def in_thread(
    method: Callable[Concatenate[Client, Arguments], Answer],
) -> Callable[Concatenate[Any, Arguments], Coroutine[Any, Any, Answer]]:
    """Return the method of an asyncio face that calls `method` of its client in a thread."""

    @wraps(method)
    async def call(self: AsyncFace[Any], /, *arguments: Arguments.args, **named: Arguments.kwargs) -> Answer:
        return await self._call(partial(method, self._client, *arguments, **named))

    return call
